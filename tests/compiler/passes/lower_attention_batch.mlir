// PASS: lower-attention
// TOLERANCE: 0.002
// Two sequences, whose separate caches are concatenated to a batch: each cache is read directly. One
// cache has floats, the other has 8 bits; the new rows come from one tensor.

func.func @main(%q: tensor<2x4x1x8xf16> {ov.names = "q"}, %a: tensor<1x3x2x8xf16> {ov.names = "a"}, %b: tensor<1x3x2x8xf16> {ov.names = "b"}, %n: tensor<2x2x1x8xf16> {ov.names = "n"}, %c: tensor<1x3x2x8xi8> {ov.names = "c"}, %s: tensor<1x3x2x1xf16> {ov.names = "s"}, %d: tensor<1x3x2x8xi8> {ov.names = "d"}, %t: tensor<1x3x2x1xf16> {ov.names = "t"}, %m: tensor<2x2x1x8xi8> {ov.names = "m"}, %u: tensor<2x2x1x1xf16> {ov.names = "u"}, %mask: tensor<2x1x1x4xf32> {ov.names = "mask"}) -> (tensor<2x4x1x8xf16> {ov.names = "y"}, tensor<2x4x1x8xf16> {ov.names = "z"}) {
  %order = ov.Constant #ov.inline<i64 [0, 2, 1, 3]> : tensor<4xi64>
  %ab = ov.Concat(%a, %b) {axis = 0 : i64} : (tensor<1x3x2x8xf16>, tensor<1x3x2x8xf16>) -> tensor<2x3x2x8xf16>
  %past = ov.Transpose(%ab, %order) : (tensor<2x3x2x8xf16>, tensor<4xi64>) -> tensor<2x2x3x8xf16>
  %k = ov.Concat(%past, %n) {axis = 2 : i64} : (tensor<2x2x3x8xf16>, tensor<2x2x1x8xf16>) -> tensor<2x2x4x8xf16>
  %y = ov.ScaledDotProductAttention(%q, %k, %k, %mask) {causal = false} : (tensor<2x4x1x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x1x1x4xf32>) -> tensor<2x4x1x8xf16>
  %cd = ov.Concat(%c, %d) {axis = 0 : i64} : (tensor<1x3x2x8xi8>, tensor<1x3x2x8xi8>) -> tensor<2x3x2x8xi8>
  %st = ov.Concat(%s, %t) {axis = 0 : i64} : (tensor<1x3x2x1xf16>, tensor<1x3x2x1xf16>) -> tensor<2x3x2x1xf16>
  %wide = ov.Dequantize(%cd, %st) {destination_type = "f16"} : (tensor<2x3x2x8xi8>, tensor<2x3x2x1xf16>) -> tensor<2x3x2x8xf16>
  %small = ov.Transpose(%wide, %order) : (tensor<2x3x2x8xf16>, tensor<4xi64>) -> tensor<2x2x3x8xf16>
  %new = ov.Dequantize(%m, %u) {destination_type = "f16"} : (tensor<2x2x1x8xi8>, tensor<2x2x1x1xf16>) -> tensor<2x2x1x8xf16>
  %l = ov.Concat(%small, %new) {axis = 2 : i64} : (tensor<2x2x3x8xf16>, tensor<2x2x1x8xf16>) -> tensor<2x2x4x8xf16>
  %z = ov.ScaledDotProductAttention(%q, %l, %l, %mask) {causal = false} : (tensor<2x4x1x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x1x1x4xf32>) -> tensor<2x4x1x8xf16>
  func.return %y, %z : tensor<2x4x1x8xf16>, tensor<2x4x1x8xf16>
}

// CHECK:      func.func @main(%[[Q:.*]]: tensor<2x4x1x8xf16> {{.*}}, %[[A:.*]]: tensor<1x3x2x8xf16> {ov.names = "a"}, %[[B:.*]]: tensor<1x3x2x8xf16> {ov.names = "b"}, %[[N:.*]]: tensor<2x2x1x8xf16> {{.*}}, %[[C:.*]]: tensor<1x3x2x8xi8> {ov.names = "c"}, %[[S:.*]]: tensor<1x3x2x1xf16> {ov.names = "s"}, %[[D:.*]]: tensor<1x3x2x8xi8> {ov.names = "d"}, %[[T:.*]]: tensor<1x3x2x1xf16> {ov.names = "t"}
// CHECK-NOT:  ov.Concat
// CHECK:      %[[KA:.*]] = ov.Transpose(%[[A]], {{.*}} -> tensor<1x2x3x8xf16>
// CHECK:      %[[NA:.*]] = ov.Slice(%[[N]], {{.*}} -> tensor<1x2x1x8xf16>
// CHECK:      %[[KB:.*]] = ov.Transpose(%[[B]], {{.*}} -> tensor<1x2x3x8xf16>
// CHECK:      %[[NB:.*]] = ov.Slice(%[[N]], {{.*}} -> tensor<1x2x1x8xf16>
// CHECK:      npu.attention %[[Q]] keys %[[KA]], %[[NA]], %[[KB]], %[[NB]] values
// CHECK-NOT:  ov.Concat
// CHECK-NOT:  ov.Dequantize
// CHECK:      npu.attention %[[Q]] keys %{{.*}} key_scales
// CHECK:      func.return
