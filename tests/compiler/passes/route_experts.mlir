// PASS: route-experts
// A token uses two of three stacked experts: their weights are gathered by the router's ids, and the
// sum is over choices instead of experts.

func.func @main(%x: tensor<1x4xf32> {ov.names = "x"}, %scores: tensor<1x3xf32> {ov.names = "scores"}) -> (tensor<1x2xf32> {ov.names = "y"}) {
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<i64>
  %w, %ids = ov.TopK(%scores, %two) {axis = -1 : i64, mode = "max", sort = "value", stable = false, index_element_type = "i64"} : (tensor<1x3xf32>, tensor<i64>) -> (tensor<1x2xf32>, tensor<1x2xi64>)
  %copies = ov.Constant #ov.inline<i64 [3, 1, 4]> : tensor<3xi64>
  %all = ov.Broadcast(%x, %copies) {mode = "numpy"} : (tensor<1x4xf32>, tensor<3xi64>) -> tensor<3x1x4xf32>
  %stored = ov.Constant #ov.inline<i8 "AQIDBAUGBwgJCgsM//79/Pv6+fj39vX0AQEBAQICAgIDAwMD"> : tensor<3x3x4xi8>
  %scale = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]> : tensor<3x3x1xf32>
  %up = ov.Dequantize(%stored, %scale) {destination_type = "f32"} : (tensor<3x3x4xi8>, tensor<3x3x1xf32>) -> tensor<3x3x4xf32>
  %h = ov.MatMul(%all, %up) {transpose_a = false, transpose_b = true} : (tensor<3x1x4xf32>, tensor<3x3x4xf32>) -> tensor<3x1x3xf32>
  %g = ov.Abs(%h) : (tensor<3x1x3xf32>) -> tensor<3x1x3xf32>
  %down = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5]> : tensor<3x2x3xf32>
  %y = ov.MatMul(%g, %down) {transpose_a = false, transpose_b = true} : (tensor<3x1x3xf32>, tensor<3x2x3xf32>) -> tensor<3x1x2xf32>
  %none = ov.Constant #ov.inline<f32 [0.0, 0.0, 0.0]> : tensor<1x3xf32>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %put = ov.ScatterElementsUpdate(%none, %ids, %w, %one) {reduction = "none", use_init_val = true} : (tensor<1x3xf32>, tensor<1x2xi64>, tensor<1x2xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  %turned = ov.Constant #ov.inline<i64 [3, 1, 1]> : tensor<3xi64>
  %column = ov.Reshape(%put, %turned) {special_zero = false} : (tensor<1x3xf32>, tensor<3xi64>) -> tensor<3x1x1xf32>
  %weighted = ov.Multiply(%y, %column) : (tensor<3x1x2xf32>, tensor<3x1x1xf32>) -> tensor<3x1x2xf32>
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %sum = ov.ReduceSum(%weighted, %zero) {keep_dims = false} : (tensor<3x1x2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
  func.return %sum : tensor<1x2xf32>
}

// CHECK:       %[[W:.*]], %[[IDS:.*]] = ov.TopK(
// CHECK:       ov.Minimum(%[[IDS]],
// CHECK:       %[[CHOSEN:.*]] = ov.Reshape({{.*}} -> tensor<2xi64>
// CHECK:       ov.Gather(%{{.*}}, %[[CHOSEN]], {{.*}} -> tensor<2x3x4xi8>
// CHECK:       ov.Gather(%{{.*}}, %[[CHOSEN]], {{.*}} -> tensor<2x3x1xf32>
// CHECK:       ov.MatMul(%{{.*}} : (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x1x3xf32>
// CHECK:       ov.Gather(%{{.*}}, %[[CHOSEN]], {{.*}} -> tensor<2x2x3xf32>
// CHECK:       ov.MatMul(%{{.*}} : (tensor<2x1x3xf32>, tensor<2x2x3xf32>) -> tensor<2x1x2xf32>
// CHECK:       ov.ReduceSum(%{{.*}} : (tensor<1x2x2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
// CHECK-NOT:   ov.Scatter
