// PASS: quantize-activations
// TOLERANCE: 0.02
// Two matmuls read the same rows, which are quantised once; float weights beside them stay in floats.

func.func @main(%x: tensor<1x3x8xf32> {ov.names = "x"}) -> (tensor<1x3x2xf32> {ov.names = "a"}, tensor<1x3x2xf32> {ov.names = "b"}, tensor<1x3x1xf32> {ov.names = "c"}) {
  %w = ov.Constant #ov.inline<i8 [100, -20, 30, -40, 50, -60, 70, 80, 1, 20, -3, 40, -5, 60, 127, -128]> : tensor<2x8xi8>
  %u = ov.Constant #ov.inline<u8 [100, 120, 130, 140, 150, 160, 170, 180, 1, 20, 3, 40, 5, 60, 127, 128]> : tensor<2x8xui8>
  %z = ov.Constant #ov.inline<u8 [128, 64]> : tensor<2x1xui8>
  %s = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<2x1xf32>
  %f = ov.Constant #ov.inline<f32 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<1x8xf32>
  %a = npu.matmul(%x, %w) scales %s {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>, tensor<2x8xi8>) scales tensor<2x1xf32> -> tensor<1x3x2xf32>
  %b = npu.matmul(%x, %u) scales %s zeros %z {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>, tensor<2x8xui8>) scales tensor<2x1xf32> zeros tensor<2x1xui8> -> tensor<1x3x2xf32>
  %c = npu.matmul(%x, %f) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>, tensor<1x8xf32>) -> tensor<1x3x1xf32>
  func.return %a, %b, %c : tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<1x3x1xf32>
}

// CHECK:      %[[PEAK:.*]] = ov.ReduceMax
// CHECK:      %[[WHOLE:.*]] = ov.Round
// CHECK-NEXT: %[[Q:.*]] = ov.Convert(%[[WHOLE]]) {destination_type = "i8"}
// CHECK:      %[[ROWS:.*]] = ov.Reshape{{.*}} -> tensor<3x1xf32>
// CHECK-NEXT: npu.matmul(%[[Q]], %{{.*}}) scales %{{.*}} rows %[[ROWS]] {
// CHECK-NOT:  ov.Round
// CHECK:      npu.matmul(%[[Q]], %{{.*}}) scales %{{.*}} zeros %{{.*}} rows %[[ROWS]] {
// CHECK:      npu.matmul(%{{.*}}, %{{.*}}) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>
