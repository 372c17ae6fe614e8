// PASS: split-experts
// Each expert's weights become a separate matrix, sliced from the stored ones; a common scale is
// not split. A batch of plain weights is not changed.

func.func @main(%x: tensor<2x1x4xf32> {ov.names = "x"}) -> (tensor<2x1x3xf32> {ov.names = "y"}, tensor<2x1x2xf32> {ov.names = "z"}, tensor<2x1x1xf32> {ov.names = "p"}) {
  %stored = ov.Constant #ov.inline<i8 "AQIDBAUGBwgJCgsM//79/Pv6+fj39vX0"> : tensor<2x3x2x2xi8>
  %scale = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : tensor<2x3x2x1xf32>
  %groups = ov.Dequantize(%stored, %scale) {destination_type = "f32"} : (tensor<2x3x2x2xi8>, tensor<2x3x2x1xf32>) -> tensor<2x3x2x2xf32>
  %shape = ov.Constant #ov.inline<i64 [2, 3, 4]> : tensor<3xi64>
  %w = ov.Reshape(%groups, %shape) {special_zero = false} : (tensor<2x3x2x2xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
  %y = ov.MatMul(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x1x3xf32>
  %bytes = ov.Constant #ov.inline<u8 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]> : tensor<2x2x4xui8>
  %shared = ov.Constant #ov.inline<f32 [0.5]> : tensor<f32>
  %zeros = ov.Constant #ov.inline<u8 [8, 9]> : tensor<1x2x1xui8>
  %v = ov.Dequantize(%bytes, %shared, %zeros) {destination_type = "f32"} : (tensor<2x2x4xui8>, tensor<f32>, tensor<1x2x1xui8>) -> tensor<2x2x4xf32>
  %z = ov.MatMul(%x, %v) {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x1x2xf32>
  %plain = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<2x1x4xf32>
  %p = ov.MatMul(%x, %plain) {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x1xf32>
  func.return %y, %z, %p : tensor<2x1x3xf32>, tensor<2x1x2xf32>, tensor<2x1x1xf32>
}

// CHECK:       ov.Split(%{{.*}} -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
// CHECK:       ov.Dequantize(%{{.*}} : (tensor<3x2x2xi8>, tensor<3x2x1xf32>) -> tensor<3x2x2xf32>
// CHECK:       ov.MatMul(%{{.*}} : (tensor<1x1x4xf32>, tensor<3x4xf32>) -> tensor<1x1x3xf32>
// CHECK:       ov.MatMul(%{{.*}} : (tensor<1x1x4xf32>, tensor<3x4xf32>) -> tensor<1x1x3xf32>
// CHECK:       ov.Concat(%{{.*}} -> tensor<2x1x3xf32>
// CHECK:       ov.Dequantize(%{{.*}} : (tensor<2x4xui8>, tensor<f32>, tensor<2x1xui8>) -> tensor<2x4xf32>
// CHECK:       ov.Concat(%{{.*}} -> tensor<2x1x2xf32>
// CHECK:       ov.MatMul(%{{.*}} : (tensor<2x1x4xf32>, tensor<2x1x4xf32>)
