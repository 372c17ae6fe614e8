// PASS: to-opset
// TOLERANCE: 2e-3
// Ops that no opset of OpenVINO has: compressed weights as one op, and two float types in one op.

func.func @main(%x: tensor<1x4xf32> {ov.names = "x"}, %q: tensor<1x1x2x4xf16> {ov.names = "q"}, %k: tensor<1x1x3x4xf16> {ov.names = "k"}, %mask: tensor<1x1x2x3xf32> {ov.names = "mask"}) -> (tensor<1x2xf32> {ov.names = "y"}, tensor<1x1x2x4xf16> {ov.names = "z"}) {
  %stored = ov.Constant #ov.inline<u8 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<2x4xui8>
  %scale = ov.Constant #ov.inline<f16 [0.5, 0.25]> : tensor<2x1xf16>
  %zero = ov.Constant #ov.inline<u8 [2, 3]> : tensor<2x1xui8>
  %w = ov.Dequantize(%stored, %scale, %zero) {ov.name = "w", destination_type = "f32"} : (tensor<2x4xui8>, tensor<2x1xf16>, tensor<2x1xui8>) -> tensor<2x4xf32>
  %y = ov.MatMul(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<1x2xf32>
  %z = ov.ScaledDotProductAttention(%q, %k, %k, %mask) {causal = false} : (tensor<1x1x2x4xf16>, tensor<1x1x3x4xf16>, tensor<1x1x3x4xf16>, tensor<1x1x2x3xf32>) -> tensor<1x1x2x4xf16>
  func.return %y, %z : tensor<1x2xf32>, tensor<1x1x2x4xf16>
}

// CHECK:      func.func @main(%{{.*}}, %[[Q:.*]]: tensor<1x1x2x4xf16> {{.*}}, %[[K:.*]]: tensor<1x1x3x4xf16> {{.*}}, %[[MASK:.*]]: tensor<1x1x2x3xf32>
// CHECK:      %[[STORED:.*]] = ov.Constant {{.*}} : tensor<2x4xui8>
// CHECK:      %[[WIDE:.*]] = ov.Convert(%[[STORED]]) {destination_type = "f32"}
// CHECK-NEXT: %[[ZERO:.*]] = ov.Convert({{.*}}) {destination_type = "f32"} : (tensor<2x1xui8>)
// CHECK-NEXT: %[[CENTRED:.*]] = ov.Subtract(%[[WIDE]], %[[ZERO]])
// CHECK-NEXT: %[[SCALE:.*]] = ov.Convert({{.*}}) {destination_type = "f32"} : (tensor<2x1xf16>)
// CHECK-NEXT: %[[W:.*]] = ov.Multiply(%[[CENTRED]], %[[SCALE]]) {ov.name = "w"}
// CHECK-NEXT: ov.MatMul(%{{.*}}, %[[W]])
// CHECK-NEXT: %[[NARROW:.*]] = ov.Convert(%[[MASK]]) {destination_type = "f16"}
// CHECK-NEXT: ov.ScaledDotProductAttention(%[[Q]], %[[K]], %[[K]], %[[NARROW]])
