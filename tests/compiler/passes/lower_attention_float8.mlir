// PASS: lower-attention

func.func @main(%q: tensor<1x4x2x8xf16> {ov.names = "q"}, %past: tensor<1x6x2x8xf8E5M2> {ov.names = "past"}, %new: tensor<1x2x2x8xf8E5M2> {ov.names = "new"}) -> (tensor<1x4x2x8xf16> {ov.names = "y"}) {
  %order = ov.Constant #ov.inline<i64 [0, 2, 1, 3]> : tensor<4xi64>
  %a = ov.Convert(%past) {destination_type = "f16"} : (tensor<1x6x2x8xf8E5M2>) -> tensor<1x6x2x8xf16>
  %b = ov.Convert(%new) {destination_type = "f16"} : (tensor<1x2x2x8xf8E5M2>) -> tensor<1x2x2x8xf16>
  %at = ov.Transpose(%a, %order) : (tensor<1x6x2x8xf16>, tensor<4xi64>) -> tensor<1x2x6x8xf16>
  %bt = ov.Transpose(%b, %order) : (tensor<1x2x2x8xf16>, tensor<4xi64>) -> tensor<1x2x2x8xf16>
  %k = ov.Concat(%at, %bt) {axis = 2 : i64} : (tensor<1x2x6x8xf16>, tensor<1x2x2x8xf16>) -> tensor<1x2x8x8xf16>
  %y = ov.ScaledDotProductAttention(%q, %k, %k) {causal = false} : (tensor<1x4x2x8xf16>, tensor<1x2x8x8xf16>, tensor<1x2x8x8xf16>) -> tensor<1x4x2x8xf16>
  func.return %y : tensor<1x4x2x8xf16>
}

// The DPU reads keys and values in their stored type.
// CHECK-NOT:  ov.Convert
// CHECK:      %[[PAST:.*]] = ov.Transpose(%{{.*}}) : (tensor<1x6x2x8xf8E5M2>, tensor<4xi64>) -> tensor<1x2x6x8xf8E5M2>
// CHECK-NEXT: %[[NEW:.*]] = ov.Transpose(%{{.*}}) : (tensor<1x2x2x8xf8E5M2>, tensor<4xi64>) -> tensor<1x2x2x8xf8E5M2>
// CHECK:      npu.attention %{{.*}} keys %[[PAST]], %[[NEW]] values
// CHECK-NOT:  ov.Convert
