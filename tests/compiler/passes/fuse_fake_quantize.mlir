// PASS: fuse-fake-quantize
// TOLERANCE: 0.002
// Two matmuls share one quantised tensor; a range per channel, one without a step at zero, and
// groups of channels stay in float arithmetic.

func.func @main(%x: tensor<1x3x8xf16> {ov.names = "x"}) -> (tensor<1x3x2xf16> {ov.names = "a"}, tensor<1x3x2xf16> {ov.names = "b"}, tensor<1x3x1xf16> {ov.names = "c"}, tensor<1x3x2xf16> {ov.names = "d"}, tensor<1x3x2xf16> {ov.names = "e"}) {
  %w = ov.Constant #ov.inline<i8 [100, -20, 30, -40, 50, -60, 70, 80, 1, 20, -3, 40, -5, 60, 127, -128]> : tensor<2x8xi8>
  %u = ov.Constant #ov.inline<u8 [100, 120, 130, 140, 150, 160, 170, 180, 1, 20, 3, 40, 5, 60, 127, 128]> : tensor<2x8xui8>
  %z = ov.Constant #ov.inline<u8 [128, 64]> : tensor<2x1xui8>
  %s = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<2x1xf32>
  %g = ov.Constant #ov.inline<i8 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<1x8xi8>
  %t = ov.Constant #ov.inline<f32 [0.5, 0.25, 1.0, 2.0]> : tensor<1x4xf32>
  %low = ov.Constant #ov.inline<f32 [-1.25]> : tensor<f32>
  %high = ov.Constant #ov.inline<f32 [1.9375]> : tensor<1x1x1xf32>
  %r = ov.FakeQuantize(%x, %low, %high, %low, %high) {levels = 256 : i64} : (tensor<1x3x8xf16>, tensor<f32>, tensor<1x1x1xf32>, tensor<f32>, tensor<1x1x1xf32>) -> tensor<1x3x8xf16>
  %a = npu.matmul(%r, %w) scales %s {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<2x8xi8>) scales tensor<2x1xf32> -> tensor<1x3x2xf16>
  %b = npu.matmul(%r, %u) scales %s zeros %z {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<2x8xui8>) scales tensor<2x1xf32> zeros tensor<2x1xui8> -> tensor<1x3x2xf16>
  %c = npu.matmul(%r, %g) scales %t {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<1x8xi8>) scales tensor<1x4xf32> -> tensor<1x3x1xf16>
  %tops = ov.Constant #ov.inline<f32 [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]> : tensor<8xf32>
  %p = ov.FakeQuantize(%x, %low, %tops, %low, %tops) {levels = 256 : i64} : (tensor<1x3x8xf16>, tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<8xf32>) -> tensor<1x3x8xf16>
  %d = npu.matmul(%p, %w) scales %s {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<2x8xi8>) scales tensor<2x1xf32> -> tensor<1x3x2xf16>
  %even = ov.Constant #ov.inline<f32 [1.25]> : tensor<f32>
  %o = ov.FakeQuantize(%x, %low, %even, %low, %even) {levels = 256 : i64} : (tensor<1x3x8xf16>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<1x3x8xf16>
  %e = npu.matmul(%o, %w) scales %s {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf16>, tensor<2x8xi8>) scales tensor<2x1xf32> -> tensor<1x3x2xf16>
  func.return %a, %b, %c, %d, %e : tensor<1x3x2xf16>, tensor<1x3x2xf16>, tensor<1x3x1xf16>, tensor<1x3x2xf16>, tensor<1x3x2xf16>
}

// CHECK:      %[[R:.*]] = ov.FakeQuantize
// CHECK:      %[[WHOLE:.*]] = ov.Round
// CHECK-NEXT: %[[CLAMPED:.*]] = ov.Clamp(%[[WHOLE]]) {min = 0.000000e+00 : f64, max = 2.550000e+02 : f64}
// CHECK-NEXT: %[[Q:.*]] = ov.Convert(%[[CLAMPED]]) {destination_type = "u8"}
// CHECK-NEXT: npu.matmul(%[[Q]], %{{.*}}) scales %{{.*}} {{.*}}a_scale = 1.250000e-02 : f64, a_zero = 100 : i64
// CHECK-NOT:  ov.Round
// CHECK:      npu.matmul(%[[Q]], %{{.*}}) scales %{{.*}} zeros %{{.*}} {{.*}}a_scale = 1.250000e-02 : f64, a_zero = 100 : i64
// CHECK:      npu.matmul(%[[R]], %{{.*}}) scales
// CHECK:      %[[P:.*]] = ov.FakeQuantize
// CHECK:      npu.matmul(%[[P]], %{{.*}}) scales
// CHECK:      %[[O:.*]] = ov.FakeQuantize
// CHECK:      npu.matmul(%[[O]], %{{.*}}) scales
