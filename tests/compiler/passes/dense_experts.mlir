// PASS: dense-experts
// Two of three experts for each of four tokens. The second expert's pairs list the token first, and
// its result is not weighted: the meaning of the indices matters, not their order.

func.func @main(%x: tensor<4x2xf32> {ov.names = "x"}, %p: tensor<4x3xf32> {ov.names = "p"}) -> (tensor<4x2xf32> {ov.names = "y"}) {
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<i64>
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<i64>
  %three = ov.Constant #ov.inline<i64 [3]> : tensor<i64>
  %w, %ids = ov.TopK(%p, %two) {axis = -1 : i64, mode = "max", sort = "value", stable = false, index_element_type = "i64"} : (tensor<4x3xf32>, tensor<i64>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  %hot = ov.OneHot(%ids, %three, %one, %zero) {axis = 2 : i64} : (tensor<4x2xi64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4x2x3xi64>
  %turn = ov.Constant #ov.inline<i64 [2, 1, 0]> : tensor<3xi64>
  %experts = ov.Transpose(%hot, %turn) : (tensor<4x2x3xi64>, tensor<3xi64>) -> tensor<3x2x4xi64>
  %column = ov.Constant #ov.inline<i64 [8, 1]> : tensor<2xi64>
  %flat = ov.Reshape(%w, %column) {special_zero = false} : (tensor<4x2xf32>, tensor<2xi64>) -> tensor<8x1xf32>
  %upright = ov.Constant #ov.inline<i64 [-1, 1]> : tensor<2xi64>
  %width = ov.Constant #ov.inline<i64 [1, 2]> : tensor<2xi64>
  %none = ov.Constant #ov.inline<f32 [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]> : tensor<4x2xf32>

  %first = ov.Gather(%experts, %zero, %zero) {batch_dims = 0 : i64} : (tensor<3x2x4xi64>, tensor<i64>, tensor<i64>) -> tensor<2x4xi64>
  %pairs = ov.NonZero(%first) {output_type = "i64"} : (tensor<2x4xi64>) -> tensor<2x?xi64>
  %s, %t = ov.Split(%pairs, %zero) {num_splits = 2 : i64} : (tensor<2x?xi64>, tensor<i64>) -> (tensor<1x?xi64>, tensor<1x?xi64>)
  %slot = ov.Squeeze(%s, %zero) : (tensor<1x?xi64>, tensor<i64>) -> tensor<?xi64>
  %token = ov.Squeeze(%t, %zero) : (tensor<1x?xi64>, tensor<i64>) -> tensor<?xi64>
  %rows = ov.Gather(%x, %token, %zero) {batch_dims = 0 : i64} : (tensor<4x2xf32>, tensor<?xi64>, tensor<i64>) -> tensor<?x2xf32>
  %a = ov.Constant #ov.inline<f32 [1.0, -2.0, 0.5, 3.0]> : tensor<2x2xf32>
  %m = ov.MatMul(%rows, %a) {transpose_a = false, transpose_b = true} : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %act = ov.Swish(%m) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %far = ov.Multiply(%token, %two) : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %number = ov.Add(%slot, %far) : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
  %weight = ov.Gather(%flat, %number, %zero) {batch_dims = 0 : i64} : (tensor<8x1xf32>, tensor<?xi64>, tensor<i64>) -> tensor<?x1xf32>
  %given = ov.Multiply(%act, %weight) : (tensor<?x2xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
  %at = ov.Reshape(%token, %upright) {special_zero = false} : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x1xi64>
  %each = ov.Broadcast(%at, %width) {mode = "bidirectional"} : (tensor<?x1xi64>, tensor<2xi64>) -> tensor<?x2xi64>
  %sum = ov.ScatterElementsUpdate(%none, %each, %given, %zero) {reduction = "sum", use_init_val = true} : (tensor<4x2xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<i64>) -> tensor<4x2xf32>

  %all = ov.Gather(%hot, %two, %two) {batch_dims = 0 : i64} : (tensor<4x2x3xi64>, tensor<i64>, tensor<i64>) -> tensor<4x2xi64>
  %others = ov.NonZero(%all) {output_type = "i64"} : (tensor<4x2xi64>) -> tensor<2x?xi64>
  %where = ov.Gather(%others, %zero, %zero) {batch_dims = 0 : i64} : (tensor<2x?xi64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %more = ov.Gather(%x, %where, %zero) {batch_dims = 0 : i64} : (tensor<4x2xf32>, tensor<?xi64>, tensor<i64>) -> tensor<?x2xf32>
  %power = ov.Exp(%more) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %there = ov.Reshape(%where, %upright) {special_zero = false} : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x1xi64>
  %wide = ov.Broadcast(%there, %width) {mode = "bidirectional"} : (tensor<?x1xi64>, tensor<2xi64>) -> tensor<?x2xi64>
  %y = ov.ScatterElementsUpdate(%sum, %wide, %power, %zero) {reduction = "sum", use_init_val = true} : (tensor<4x2xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<i64>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}

// CHECK-NOT:   ov.OneHot
// CHECK:       %[[HITS:.*]] = ov.Equal(%{{.*}} : (tensor<4x2xi64>, tensor<i64>) -> tensor<4x2xi1>
// CHECK:       %[[ROUTED:.*]] = ov.ReduceLogicalOr(%[[HITS]], %{{.*}} -> tensor<4x1xi1>
// CHECK:       %[[RESULT:.*]] = ov.Swish({{.*}} : (tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK:       %[[OWN:.*]] = ov.Select(%[[HITS]],
// CHECK:       %[[WEIGHT:.*]] = ov.ReduceSum(%[[OWN]], %{{.*}} -> tensor<4x1xf32>
// CHECK:       %[[GIVEN:.*]] = ov.Multiply(%[[RESULT]], %[[WEIGHT]])
// CHECK:       %[[ADDED:.*]] = ov.Select(%[[ROUTED]], %[[GIVEN]],
// CHECK-NEXT:  %[[SUM:.*]] = ov.Add(%{{.*}}, %[[ADDED]])
// CHECK:       %[[POWER:.*]] = ov.Exp({{.*}} -> tensor<4x2xf32>
// CHECK:       ov.Add(%[[SUM]],
// CHECK-NOT:   ov.NonZero
