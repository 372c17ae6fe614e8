// PASS: fuse-sdpa
// Attention as separate ops, over key heads that are repeated for each head of a group.

func.func @main(%q: tensor<1x4x3x8xf32> {ov.names = "q"}, %k: tensor<1x2x5x8xf32> {ov.names = "k"}, %v: tensor<1x2x5x8xf32> {ov.names = "v"}, %mask: tensor<1x1x3x5xf32> {ov.names = "mask"}) -> (tensor<1x4x3x8xf32> {ov.names = "y"}) {
  %axis = ov.Constant #ov.inline<i64 [2]> : tensor<i64>
  %repeated = ov.Constant #ov.inline<i64 [1, 2, 2, 5, 8]> : tensor<5xi64>
  %merged = ov.Constant #ov.inline<i64 [1, 4, 5, 8]> : tensor<4xi64>
  %k1 = ov.Unsqueeze(%k, %axis) : (tensor<1x2x5x8xf32>, tensor<i64>) -> tensor<1x2x1x5x8xf32>
  %k2 = ov.Broadcast(%k1, %repeated) {mode = "bidirectional"} : (tensor<1x2x1x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %k3 = ov.Reshape(%k2, %merged) {special_zero = false} : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %v1 = ov.Unsqueeze(%v, %axis) : (tensor<1x2x5x8xf32>, tensor<i64>) -> tensor<1x2x1x5x8xf32>
  %v2 = ov.Broadcast(%v1, %repeated) {mode = "bidirectional"} : (tensor<1x2x1x5x8xf32>, tensor<5xi64>) -> tensor<1x2x2x5x8xf32>
  %v3 = ov.Reshape(%v2, %merged) {special_zero = false} : (tensor<1x2x2x5x8xf32>, tensor<4xi64>) -> tensor<1x4x5x8xf32>
  %scale = ov.Constant #ov.inline<f32 [0.5]> : tensor<f32>
  %scores = ov.MatMul(%q, %k3) {transpose_a = false, transpose_b = true} : (tensor<1x4x3x8xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x5xf32>
  %scaled = ov.Multiply(%scores, %scale) : (tensor<1x4x3x5xf32>, tensor<f32>) -> tensor<1x4x3x5xf32>
  %masked = ov.Add(%scaled, %mask) : (tensor<1x4x3x5xf32>, tensor<1x1x3x5xf32>) -> tensor<1x4x3x5xf32>
  %weights = ov.Softmax(%masked) {axis = -1 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %y = ov.MatMul(%weights, %v3) {transpose_a = false, transpose_b = false} : (tensor<1x4x3x5xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32>
  func.return %y : tensor<1x4x3x8xf32>
}

// CHECK:      func.func @main(%[[Q:.*]]: {{.*}}, %[[K:.*]]: {{.*}}, %[[V:.*]]: {{.*}}, %[[MASK:.*]]: {{.*}}) ->
// CHECK-NEXT:   %[[SCALE:.*]] = ov.Constant #ov.inline<f32 [0.5]>
// CHECK-NEXT:   %[[Y:.*]] = ov.ScaledDotProductAttention(%[[Q]], %[[K]], %[[V]], %[[MASK]], %[[SCALE]])
// CHECK-NEXT:   func.return %[[Y]]
