// PASS: to-opset
// TOLERANCE: 2e-3
// Fused ops are expanded again: RMSNorm and RoPE in f32, and repeated heads of K.

func.func @main(%x: tensor<1x4x3x4xf16> {ov.names = "x"}, %cos: tensor<1x1x3x4xf32> {ov.names = "cos"}, %sin: tensor<1x1x3x4xf32> {ov.names = "sin"}, %k: tensor<1x2x5x4xf16> {ov.names = "k"}) -> (tensor<1x4x3x4xf16> {ov.names = "z"}) {
  %gamma = ov.Constant #ov.inline<f16 [1, 2, 0.5, -1]> : tensor<4xf16>
  %n = ov.RMS(%x, %gamma) {ov.name = "norm", epsilon = 1.000000e-05 : f64} : (tensor<1x4x3x4xf16>, tensor<4xf16>) -> tensor<1x4x3x4xf16>
  %q = ov.RoPE(%n, %cos, %sin) {ov.name = "turned"} : (tensor<1x4x3x4xf16>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x4x3x4xf16>
  %z = ov.ScaledDotProductAttention(%q, %k, %k) {causal = false} : (tensor<1x4x3x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>) -> tensor<1x4x3x4xf16>
  func.return %z : tensor<1x4x3x4xf16>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<1x4x3x4xf16> {{.*}}, %[[COS:.*]]: tensor<1x1x3x4xf32> {{.*}}, %[[SIN:.*]]: tensor<1x1x3x4xf32> {{.*}}, %[[K:.*]]: tensor<1x2x5x4xf16>
// CHECK:      %[[WIDE:.*]] = ov.Convert(%[[X]]) {destination_type = "f32"}
// CHECK:      %[[SQUARE:.*]] = ov.Multiply(%[[WIDE]], %[[WIDE]])
// CHECK:      ov.ReduceMean(%[[SQUARE]], {{.*}}) {keep_dims = true}
// CHECK:      %[[ROOT:.*]] = ov.Sqrt
// CHECK:      ov.Divide(%[[WIDE]], %[[ROOT]])
// CHECK:      ov.Convert({{.*}}) {{.*}}ov.name = "norm"
// CHECK:      %[[MINUS:.*]] = ov.Negative
// CHECK:      ov.Concat(%[[MINUS]], {{.*}}) {axis = 3
// CHECK:      %[[Q:.*]] = ov.Convert({{.*}}) {{.*}}ov.name = "turned"
// CHECK:      ov.Tile({{.*}}) : (tensor<1x2x1x5x4xf16>, tensor<5xi64>) -> tensor<1x2x2x5x4xf16>
// CHECK:      %[[MANY:.*]] = ov.Reshape({{.*}}) -> tensor<1x4x5x4xf16>
// CHECK:      ov.ScaledDotProductAttention(%[[Q]], %[[MANY]], %{{.*}})
