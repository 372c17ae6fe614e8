// PASS: lower-matmul
// TOLERANCE: 0.05

func.func @main(%x: tensor<1x3x8xf16> {ov.names = "x"}) -> (tensor<1x3x4xf16> {ov.names = "y"}, tensor<1x3x2xf16> {ov.names = "z"}) {
  // 4-bit weights in groups of four channels: the reshape is part of the weight.
  %stored = ov.Constant #ov.inline<u4 "AQIDBAUGBwgBAgMEBQYHCAECAwQFBgcIAQIDBAUGBwg="> : tensor<4x2x4xui4>
  %zero = ov.Constant #ov.inline<u4 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<4x2x1xui4>
  %scale = ov.Constant #ov.inline<f16 [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]> : tensor<4x2x1xf16>
  %pattern = ov.Constant #ov.inline<i64 [4, 8]> : tensor<2xi64>
  %w = ov.Dequantize(%stored, %scale, %zero) {destination_type = "f16"} : (tensor<4x2x4xui4>, tensor<4x2x1xf16>, tensor<4x2x1xui4>) -> tensor<4x2x4xf16>
  %flat = ov.Reshape(%w, %pattern) {special_zero = false} : (tensor<4x2x4xf16>, tensor<2xi64>) -> tensor<4x8xf16>
  %y = ov.MatMul(%x, %flat) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<4x8xf16>) -> tensor<1x3x4xf16>

  // Scales of channels, not of rows: the DPU has no such table, so the weights are computed.
  %plain = ov.Constant #ov.inline<i8 [1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8]> : tensor<2x8xi8>
  %channel = ov.Constant #ov.inline<f16 [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]> : tensor<1x8xf16>
  %v = ov.Dequantize(%plain, %channel) {destination_type = "f16"} : (tensor<2x8xi8>, tensor<1x8xf16>) -> tensor<2x8xf16>
  %z = ov.MatMul(%x, %v) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<2x8xf16>) -> tensor<1x3x2xf16>
  func.return %y, %z : tensor<1x3x4xf16>, tensor<1x3x2xf16>
}

// CHECK:      npu.matmul(%{{.*}}, %{{.*}}) scales %{{.*}} zeros %{{.*}} {
// CHECK-SAME: : (tensor<1x3x8xf16>, tensor<4x8xui4>) scales tensor<4x2xf16> zeros tensor<4x2xui8> -> tensor<1x3x4xf16>
// CHECK:      %[[V:.*]] = ov.Dequantize
// CHECK:      npu.matmul(%{{.*}}, %[[V]]) {
