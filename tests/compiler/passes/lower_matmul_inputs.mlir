// PASS: lower-matmul
// TOLERANCE: 1e-3
// The DPU reads 4-bit weights that are inputs, in groups; only their zero points become bytes.

func.func @main(%x: tensor<1x5x8xf16> {ov.names = "x"}, %w: tensor<2x3x4xui4> {ov.names = "w"}, %s: tensor<2x3x1xf16> {ov.names = "s"}, %z: tensor<3x2x1xui4> {ov.names = "z"}) -> (tensor<1x5x3xf16> {ov.names = "y"}) {
  %order = ov.Constant #ov.inline<i64 [1, 0, 2]> : tensor<3xi64>
  %pattern = ov.Constant #ov.inline<i64 [3, 8]> : tensor<2xi64>
  %rows = ov.Transpose(%w, %order) : (tensor<2x3x4xui4>, tensor<3xi64>) -> tensor<3x2x4xui4>
  %scales = ov.Transpose(%s, %order) : (tensor<2x3x1xf16>, tensor<3xi64>) -> tensor<3x2x1xf16>
  %wide = ov.Dequantize(%rows, %scales, %z) {destination_type = "f16"} : (tensor<3x2x4xui4>, tensor<3x2x1xf16>, tensor<3x2x1xui4>) -> tensor<3x2x4xf16>
  %flat = ov.Reshape(%wide, %pattern) {special_zero = false} : (tensor<3x2x4xf16>, tensor<2xi64>) -> tensor<3x8xf16>
  %y = ov.MatMul(%x, %flat) {transpose_a = false, transpose_b = true} : (tensor<1x5x8xf16>, tensor<3x8xf16>) -> tensor<1x5x3xf16>
  func.return %y : tensor<1x5x3xf16>
}

// CHECK:     npu.bytes(%z) : (tensor<3x2x1xui4>) -> tensor<3xui8>
// CHECK:     %[[ROWS:.*]] = ov.Reshape(%rows, %{{.*}}) {special_zero = false} : (tensor<3x2x4xui4>, tensor<2xi64>) -> tensor<3x8xui4>
// CHECK:     npu.matmul(%x, %[[ROWS]]) scales %{{.*}} zeros %{{.*}}
// CHECK-NOT: ov.Dequantize
