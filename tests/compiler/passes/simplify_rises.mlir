// PASS: simplify
// A leaky rectifier becomes a maximum; repeated elements become a broadcast, by scales or sizes. A
// resampling to the same length is removed. Others stay.

func.func @main(%x: tensor<1x2x3xf32> {ov.names = "x"}) -> (tensor<1x2x3xf32> {ov.names = "a"}, tensor<1x2x3xf32> {ov.names = "b"}, tensor<1x2x6xf32> {ov.names = "c"}, tensor<1x2x6xf32> {ov.names = "d"}, tensor<1x2x6xf32> {ov.names = "e"}, tensor<1x2x3xf32> {ov.names = "f"}) {
  %slope = ov.Constant #ov.inline<f32 [0.5]> : tensor<1xf32>
  %a = ov.PRelu(%x, %slope) : (tensor<1x2x3xf32>, tensor<1xf32>) -> tensor<1x2x3xf32>
  %steep = ov.Constant #ov.inline<f32 [2.0]> : tensor<1xf32>
  %b = ov.PRelu(%x, %steep) : (tensor<1x2x3xf32>, tensor<1xf32>) -> tensor<1x2x3xf32>
  %two = ov.Constant #ov.inline<f32 [2.0]> : tensor<1xf32>
  %axis = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %c = ov.Interpolate(%x, %two, %axis) {mode = "nearest", shape_calculation_mode = "scales", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", antialias = "false", pads_begin = array<i64>, pads_end = array<i64>} : (tensor<1x2x3xf32>, tensor<1xf32>, tensor<1xi64>) -> tensor<1x2x6xf32>
  %d = ov.Interpolate(%x, %two, %axis) {mode = "linear", shape_calculation_mode = "scales", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", antialias = "false", pads_begin = array<i64>, pads_end = array<i64>} : (tensor<1x2x3xf32>, tensor<1xf32>, tensor<1xi64>) -> tensor<1x2x6xf32>
  %six = ov.Constant #ov.inline<i64 [6]> : tensor<1xi64>
  %e = ov.Interpolate(%x, %six, %axis) {mode = "nearest", shape_calculation_mode = "sizes", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", antialias = "false", pads_begin = array<i64>, pads_end = array<i64>} : (tensor<1x2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x6xf32>
  %more = ov.Constant #ov.inline<f32 [1.25]> : tensor<1xf32>
  %f = ov.Interpolate(%x, %more, %axis) {mode = "linear_onnx", shape_calculation_mode = "scales", coordinate_transformation_mode = "half_pixel", nearest_mode = "floor", antialias = "false", pads_begin = array<i64>, pads_end = array<i64>} : (tensor<1x2x3xf32>, tensor<1xf32>, tensor<1xi64>) -> tensor<1x2x3xf32>
  func.return %a, %b, %c, %d, %e, %f : tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x6xf32>, tensor<1x2x6xf32>, tensor<1x2x6xf32>, tensor<1x2x3xf32>
}

// CHECK:      %[[P:.*]] = ov.Multiply(%x, {{.*}} -> tensor<1x2x3xf32>
// CHECK:      %[[A:.*]] = ov.Maximum(%x, %[[P]])
// CHECK:      %[[B:.*]] = ov.PRelu(%x,
// CHECK:      %[[M:.*]] = ov.Broadcast({{.*}} -> tensor<1x2x3x2xf32>
// CHECK:      %[[C:.*]] = ov.Reshape(%[[M]]
// CHECK:      %[[D:.*]] = ov.Interpolate(%x,
// CHECK:      %[[N:.*]] = ov.Broadcast({{.*}} -> tensor<1x2x3x2xf32>
// CHECK:      %[[E:.*]] = ov.Reshape(%[[N]]
// CHECK:      func.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %x
