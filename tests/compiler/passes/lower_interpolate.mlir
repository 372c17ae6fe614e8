// PASS: lower-interpolate
// Nearest elements of an axis: one gather. Linear: two gathers, weighted in f32 and rounded once.

func.func @main(%x: tensor<1x2x2x3xf16> {ov.names = "x"}) -> (tensor<1x2x3x3xf16> {ov.names = "a"}, tensor<1x2x3x3xf16> {ov.names = "b"}) {
  %size = ov.Constant #ov.inline<i64 [3]> : tensor<1xi64>
  %axis = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %a = ov.Interpolate(%x, %size, %axis) {mode = "nearest", shape_calculation_mode = "sizes", coordinate_transformation_mode = "align_corners", nearest_mode = "simple", antialias = "false", pads_begin = array<i64>, pads_end = array<i64>} : (tensor<1x2x2x3xf16>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x3x3xf16>
  %b = ov.Interpolate(%x, %size, %axis) {mode = "linear_onnx", shape_calculation_mode = "sizes", coordinate_transformation_mode = "align_corners", nearest_mode = "simple", antialias = "false", pads_begin = array<i64>, pads_end = array<i64>} : (tensor<1x2x2x3xf16>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x3x3xf16>
  func.return %a, %b : tensor<1x2x3x3xf16>, tensor<1x2x3x3xf16>
}

// CHECK:      %[[T:.*]] = ov.Transpose({{.*}} -> tensor<2x1x2x3xf16>
// CHECK:      %[[TABLE:.*]] = ov.Reshape(%[[T]], {{.*}} -> tensor<2x6xf16>
// CHECK-NEXT: %[[I:.*]] = ov.Constant #ov.inline<i64 [0, 0, 1]>
// CHECK:      %[[R:.*]] = ov.Gather(%[[TABLE]], %[[I]], {{.*}} -> tensor<3x6xf16>
// CHECK:      %[[M:.*]] = ov.Reshape(%[[R]], {{.*}} -> tensor<3x1x2x3xf16>
// CHECK-NEXT: ov.Constant #ov.inline<i64 [1, 2, 0, 3]>
// CHECK-NEXT: ov.Transpose(%[[M]], {{.*}} -> tensor<1x2x3x3xf16>
// CHECK:      ov.Constant #ov.inline<i64 [0, 0, 1]>
// CHECK:      %[[BELOW:.*]] = ov.Convert({{.*}} -> tensor<3x6xf32>
// CHECK-NEXT: ov.Constant #ov.inline<f32 [1.0, 0.5, 1.0]> : tensor<3x1xf32>
// CHECK-NEXT: ov.Multiply(%[[BELOW]],
// CHECK-NEXT: ov.Constant #ov.inline<i64 [1, 1, 1]>
// CHECK:      ov.Constant #ov.inline<f32 [0.0, 0.5, 0.0]> : tensor<3x1xf32>
// CHECK:      %[[SUM:.*]] = ov.Add(
// CHECK:      ov.Convert({{.*}} -> tensor<1x2x3x3xf16>
