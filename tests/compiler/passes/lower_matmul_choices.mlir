// PASS: lower-matmul
// Matrices chosen from a stack are not gathered first: the matmul gathers them while loading. A
// quantised stack comes with the stacks of its tables.

func.func @main(%x: tensor<2x1x4xf32> {ov.names = "x"}) -> (tensor<2x1x3xf32> {ov.names = "y"}, tensor<2x1x2xf32> {ov.names = "z"}) {
  %numbers = ov.Constant #ov.inline<i64 [2, 0]> : tensor<2xi64>
  %first = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %stored = ov.Constant #ov.inline<i8 "AQIDBAUGBwgJCgsM//79/Pv6+fj39vX0AQEBAQICAgIDAwMD"> : tensor<3x3x4xi8>
  %scale = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]> : tensor<3x3x1xf32>
  %s = ov.Gather(%stored, %numbers, %first) {batch_dims = 0 : i64} : (tensor<3x3x4xi8>, tensor<2xi64>, tensor<i64>) -> tensor<2x3x4xi8>
  %t = ov.Gather(%scale, %numbers, %first) {batch_dims = 0 : i64} : (tensor<3x3x1xf32>, tensor<2xi64>, tensor<i64>) -> tensor<2x3x1xf32>
  %w = ov.Dequantize(%s, %t) {destination_type = "f32"} : (tensor<2x3x4xi8>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %y = ov.MatMul(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x1x3xf32>
  %plain = ov.Constant #ov.inline<f16 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<3x2x4xf16>
  %p = ov.Gather(%plain, %numbers, %first) {batch_dims = 0 : i64} : (tensor<3x2x4xf16>, tensor<2xi64>, tensor<i64>) -> tensor<2x2x4xf16>
  %v = ov.Convert(%p) {destination_type = "f32"} : (tensor<2x2x4xf16>) -> tensor<2x2x4xf32>
  %z = ov.MatMul(%x, %v) {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x1x2xf32>
  func.return %y, %z : tensor<2x1x3xf32>, tensor<2x1x2xf32>
}

// CHECK-NOT:   ov.Gather
// CHECK:       npu.matmul(%x, %{{.*}}) scales %{{.*}} choices %{{.*}} {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<3x3x4xi8>) scales tensor<3x3x1xf32> choices tensor<2xi64> -> tensor<2x1x3xf32>
// CHECK:       npu.matmul(%x, %{{.*}}) choices %{{.*}} {transpose_a = false, transpose_b = true} : (tensor<2x1x4xf32>, tensor<3x2x4xf16>) choices tensor<2xi64> -> tensor<2x1x2xf32>
