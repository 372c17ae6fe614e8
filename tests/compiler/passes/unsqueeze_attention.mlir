// PASS: unsqueeze-attention
// TOLERANCE: 1e-6
// The mask broadcasts over the batch and the heads.

func.func @main(%q: tensor<2x3x8xf32> {ov.names = "q"}, %k: tensor<2x3x8xf32> {ov.names = "k"}, %v: tensor<2x3x8xf32> {ov.names = "v"}, %mask: tensor<1x3x3xf32> {ov.names = "mask"}) -> (tensor<2x3x8xf32> {ov.names = "y"}) {
  %y = ov.ScaledDotProductAttention(%q, %k, %v, %mask) {ov.name = "attention", causal = false} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<1x3x3xf32>) -> tensor<2x3x8xf32>
  func.return %y : tensor<2x3x8xf32>
}

// CHECK:     %[[Q:.*]] = ov.Reshape(%q, {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:     %[[K:.*]] = ov.Reshape(%k, {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:     %[[V:.*]] = ov.Reshape(%v, {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:     %[[A:.*]] = ov.ScaledDotProductAttention(%[[Q]], %[[K]], %[[V]], %mask)
// CHECK:     ov.Reshape(%[[A]], {{.*}} {ov.name = "attention"
