// PASS: lower-attention
// A past of two blocks and a tail is concatenated, and again with the new rows: all four stay separate.

func.func @main(%q: tensor<1x4x1x8xf32> {ov.names = "q"}, %a: tensor<1x4x2x8xf32> {ov.names = "a"}, %b: tensor<1x4x2x8xf32> {ov.names = "b"}, %t: tensor<1x3x2x8xf32> {ov.names = "t"}, %n: tensor<1x2x1x8xf32> {ov.names = "n"}, %mask: tensor<1x1x1x12xf32> {ov.names = "mask"}) -> (tensor<1x4x1x8xf32> {ov.names = "y"}) {
  %order = ov.Constant #ov.inline<i64 [0, 2, 1, 3]> : tensor<4xi64>
  %ta = ov.Transpose(%a, %order) : (tensor<1x4x2x8xf32>, tensor<4xi64>) -> tensor<1x2x4x8xf32>
  %tb = ov.Transpose(%b, %order) : (tensor<1x4x2x8xf32>, tensor<4xi64>) -> tensor<1x2x4x8xf32>
  %tt = ov.Transpose(%t, %order) : (tensor<1x3x2x8xf32>, tensor<4xi64>) -> tensor<1x2x3x8xf32>
  %past = ov.Concat(%ta, %tb, %tt) {axis = 2 : i64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x11x8xf32>
  %k = ov.Concat(%past, %n) {axis = -2 : i64} : (tensor<1x2x11x8xf32>, tensor<1x2x1x8xf32>) -> tensor<1x2x12x8xf32>
  %y = ov.ScaledDotProductAttention(%q, %k, %k, %mask) {causal = false} : (tensor<1x4x1x8xf32>, tensor<1x2x12x8xf32>, tensor<1x2x12x8xf32>, tensor<1x1x1x12xf32>) -> tensor<1x4x1x8xf32>
  func.return %y : tensor<1x4x1x8xf32>
}

// CHECK:      func.func @main(%[[Q:.*]]: tensor<1x4x1x8xf32> {{.*}}, %[[A:.*]]: tensor<1x4x2x8xf32> {ov.names = "a"}, %[[B:.*]]: tensor<1x4x2x8xf32> {ov.names = "b"}, %[[T:.*]]: tensor<1x3x2x8xf32> {{.*}}, %[[N:.*]]: tensor<1x2x1x8xf32>
// CHECK-NOT:  ov.Concat
// CHECK:      %[[TA:.*]] = ov.Transpose(%[[A]],
// CHECK-NOT:  ov.Concat
// CHECK:      npu.attention %[[Q]] keys %[[TA]], %[[TB:.*]], %[[TT:.*]], %[[N]] values %[[TA]], %[[TB]], %[[TT]], %[[N]] mask
// CHECK-NOT:  ov.Concat
// CHECK:      func.return
