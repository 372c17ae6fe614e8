// PASS: lower-attention
// The causal part of the mask is constant, the padding part is not. Row 0 may attend to the cache
// and itself, row 1 to one position more.

func.func @main(%q: tensor<1x2x2x8xf32> {ov.names = "q"}, %k: tensor<1x2x5x8xf32> {ov.names = "k"}, %v: tensor<1x2x5x8xf32> {ov.names = "v"}, %real: tensor<1x1x1x5xi1> {ov.names = "real"}) -> (tensor<1x2x2x8xf32> {ov.names = "y"}) {
  %causal = ov.Constant #ov.inline<boolean [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]> : tensor<1x1x2x5xi1>
  %zero = ov.Constant #ov.inline<f32 [0.0]> : tensor<f32>
  %lowest = ov.Constant #ov.inline<f32 [-65504.0]> : tensor<f32>
  %seen = ov.BitwiseAnd(%causal, %real) : (tensor<1x1x2x5xi1>, tensor<1x1x1x5xi1>) -> tensor<1x1x2x5xi1>
  %mask = ov.Select(%seen, %zero, %lowest) : (tensor<1x1x2x5xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x2x5xf32>
  %scale = ov.Constant #ov.inline<f32 [0.25]> : tensor<f32>
  %y = ov.ScaledDotProductAttention(%q, %k, %v, %mask, %scale) {causal = false} : (tensor<1x2x2x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x1x2x5xf32>, tensor<f32>) -> tensor<1x2x2x8xf32>
  func.return %y : tensor<1x2x2x8xf32>
}

// CHECK: npu.attention {{.*}} mask {{.*}} {scale = 2.500000e-01 : f64, reach = array<i64: 4, 5>}
