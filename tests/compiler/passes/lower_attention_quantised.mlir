// PASS: lower-attention
// TOLERANCE: 0.002
// A cache in 8 bits, stored token by token, and new rows in 8 bits: nothing widens them. If one part
// has floats, all parts are widened.

func.func @main(%q: tensor<1x4x2x8xf16> {ov.names = "q"}, %p: tensor<1x3x2x8xi8> {ov.names = "p"}, %s: tensor<1x3x2x1xf16> {ov.names = "s"}, %n: tensor<1x2x2x8xi8> {ov.names = "n"}, %t: tensor<1x2x2x1xf16> {ov.names = "t"}, %f: tensor<1x2x2x8xf16> {ov.names = "f"}) -> (tensor<1x4x2x8xf16> {ov.names = "y"}, tensor<1x4x2x8xf16> {ov.names = "z"}) {
  %order = ov.Constant #ov.inline<i64 [0, 2, 1, 3]> : tensor<4xi64>
  %wide = ov.Dequantize(%p, %s) {destination_type = "f16"} : (tensor<1x3x2x8xi8>, tensor<1x3x2x1xf16>) -> tensor<1x3x2x8xf16>
  %past = ov.Transpose(%wide, %order) : (tensor<1x3x2x8xf16>, tensor<4xi64>) -> tensor<1x2x3x8xf16>
  %new = ov.Dequantize(%n, %t) {destination_type = "f16"} : (tensor<1x2x2x8xi8>, tensor<1x2x2x1xf16>) -> tensor<1x2x2x8xf16>
  %k = ov.Concat(%past, %new) {axis = 2 : i64} : (tensor<1x2x3x8xf16>, tensor<1x2x2x8xf16>) -> tensor<1x2x5x8xf16>
  %y = ov.ScaledDotProductAttention(%q, %k, %k) {causal = false} : (tensor<1x4x2x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>) -> tensor<1x4x2x8xf16>
  %m = ov.Concat(%past, %f) {axis = 2 : i64} : (tensor<1x2x3x8xf16>, tensor<1x2x2x8xf16>) -> tensor<1x2x5x8xf16>
  %z = ov.ScaledDotProductAttention(%q, %k, %m) {causal = false} : (tensor<1x4x2x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>) -> tensor<1x4x2x8xf16>
  func.return %y, %z : tensor<1x4x2x8xf16>, tensor<1x4x2x8xf16>
}

// CHECK:      func.func @main(%[[Q:.*]]: tensor<1x4x2x8xf16> {{.*}}, %[[P:.*]]: tensor<1x3x2x8xi8> {{.*}}, %[[S:.*]]: tensor<1x3x2x1xf16> {{.*}}, %[[N:.*]]: tensor<1x2x2x8xi8> {{.*}}, %[[T:.*]]: tensor<1x2x2x1xf16> {{.*}}, %[[F:.*]]: tensor<1x2x2x8xf16> {{.*}}) ->
// CHECK:      %[[K:.*]] = ov.Transpose(%[[P]], {{.*}} -> tensor<1x2x3x8xi8>
// CHECK-NEXT: %[[KS:.*]] = ov.Transpose(%[[S]], {{.*}} -> tensor<1x2x3x1xf16>
// CHECK-NEXT: %[[V:.*]] = ov.Transpose(%[[P]], {{.*}} -> tensor<1x2x3x8xi8>
// CHECK-NEXT: %[[VS:.*]] = ov.Transpose(%[[S]], {{.*}} -> tensor<1x2x3x1xf16>
// CHECK-NEXT: npu.attention %[[Q]] keys %[[K]], %[[N]] values %[[V]], %[[N]] key_scales %[[KS]], %[[T]] value_scales %[[VS]], %[[T]] {
// CHECK:      npu.attention %[[Q]] keys %{{.*}}, %{{.*}} values %{{.*}}, %[[F]] {
