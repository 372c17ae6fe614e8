// PASS: lower-matmul
// TOLERANCE: 0.01
// The DPU reads the weight in its stored type, and stores the result as f32.

func.func @main(%x: tensor<1x2x4xf16> {ov.names = "x"}) -> (tensor<1x2x2xf32> {ov.names = "y"}) {
  %stored = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<2x4xf32>
  %w = ov.Convert(%stored) {destination_type = "f16"} : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %p = ov.MatMul(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf16>, tensor<2x4xf16>) -> tensor<1x2x2xf16>
  %y = ov.Convert(%p) {destination_type = "f32"} : (tensor<1x2x2xf16>) -> tensor<1x2x2xf32>
  func.return %y : tensor<1x2x2xf32>
}

// CHECK:        %[[W:.*]] = ov.Constant {{.*}} : tensor<2x4xf32>
// CHECK-NEXT:   %[[Y:.*]] = npu.matmul(%{{.*}}, %[[W]]) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf16>, tensor<2x4xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT:   func.return %[[Y]]
