// PASS: lower-attention
// The cache and the new rows are joined on their way into CMX, not in DDR.

func.func @main(%q: tensor<1x4x2x8xf32> {ov.names = "q"}, %pk: tensor<1x2x3x8xf32> {ov.names = "pk"}, %nk: tensor<1x2x2x8xf32> {ov.names = "nk"}, %pv: tensor<1x2x3x8xf32> {ov.names = "pv"}, %nv: tensor<1x2x2x8xf32> {ov.names = "nv"}, %mask: tensor<1x1x2x5xf32> {ov.names = "mask"}) -> (tensor<1x4x2x8xf32> {ov.names = "y"}) {
  %k = ov.Concat(%pk, %nk) {axis = -2 : i64} : (tensor<1x2x3x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x5x8xf32>
  %v = ov.Concat(%pv, %nv) {axis = -2 : i64} : (tensor<1x2x3x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x5x8xf32>
  %scale = ov.Constant #ov.inline<f32 [0.25]> : tensor<f32>
  %y = ov.ScaledDotProductAttention(%q, %k, %v, %mask, %scale) {causal = false} : (tensor<1x4x2x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x1x2x5xf32>, tensor<f32>) -> tensor<1x4x2x8xf32>
  func.return %y : tensor<1x4x2x8xf32>
}

// CHECK:      func.func @main(%[[Q:.*]]: {{.*}}, %[[PK:.*]]: {{.*}}, %[[NK:.*]]: {{.*}}, %[[PV:.*]]: {{.*}}, %[[NV:.*]]: {{.*}}, %[[MASK:.*]]: {{.*}}) ->
// CHECK-NEXT:   %[[Y:.*]] = npu.attention %[[Q]] keys %[[PK]], %[[NK]] values %[[PV]], %[[NV]] mask %[[MASK]] {scale = 2.500000e-01 : f64}
// CHECK-NEXT:   func.return %[[Y]]
