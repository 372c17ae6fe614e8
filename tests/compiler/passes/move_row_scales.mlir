// PASS: move-row-scales

func.func @main(%q: tensor<1x4x2x8xf32> {ov.names = "q"}, %past: tensor<1x6x2x8xf8E4M3FN> {ov.names = "past"}, %new: tensor<1x2x2x8xf8E4M3FN> {ov.names = "new"}, %plain: tensor<1x2x8x8xf32> {ov.names = "plain"}) -> (tensor<1x4x2x8xf32> {ov.names = "y"}, tensor<1x4x2x8xf32> {ov.names = "z"}) {
  %order = ov.Constant #ov.inline<i64 [0, 2, 1, 3]> : tensor<4xi64>
  %scale = ov.Constant #ov.inline<f32 [0.25]> : tensor<f32>
  %a = ov.Dequantize(%past, %scale) {destination_type = "f32"} : (tensor<1x6x2x8xf8E4M3FN>, tensor<f32>) -> tensor<1x6x2x8xf32>
  %b = ov.Dequantize(%new, %scale) {destination_type = "f32"} : (tensor<1x2x2x8xf8E4M3FN>, tensor<f32>) -> tensor<1x2x2x8xf32>
  %at = ov.Transpose(%a, %order) : (tensor<1x6x2x8xf32>, tensor<4xi64>) -> tensor<1x2x6x8xf32>
  %bt = ov.Transpose(%b, %order) : (tensor<1x2x2x8xf32>, tensor<4xi64>) -> tensor<1x2x2x8xf32>
  %k = ov.Concat(%at, %bt) {axis = 2 : i64} : (tensor<1x2x6x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x8x8xf32>
  %c = ov.Dequantize(%past, %scale) {destination_type = "f32"} : (tensor<1x6x2x8xf8E4M3FN>, tensor<f32>) -> tensor<1x6x2x8xf32>
  %d = ov.Dequantize(%new, %scale) {destination_type = "f32"} : (tensor<1x2x2x8xf8E4M3FN>, tensor<f32>) -> tensor<1x2x2x8xf32>
  %ct = ov.Transpose(%c, %order) : (tensor<1x6x2x8xf32>, tensor<4xi64>) -> tensor<1x2x6x8xf32>
  %dt = ov.Transpose(%d, %order) : (tensor<1x2x2x8xf32>, tensor<4xi64>) -> tensor<1x2x2x8xf32>
  %v = ov.Concat(%ct, %dt) {axis = 2 : i64} : (tensor<1x2x6x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x8x8xf32>
  %y = ov.ScaledDotProductAttention(%q, %k, %v) {causal = false} : (tensor<1x4x2x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x2x8xf32>

  // A part with another scale, or without one, prevents the move.
  %other = ov.Constant #ov.inline<f32 [0.5]> : tensor<f32>
  %e = ov.Dequantize(%past, %other) {destination_type = "f32"} : (tensor<1x6x2x8xf8E4M3FN>, tensor<f32>) -> tensor<1x6x2x8xf32>
  %f = ov.Dequantize(%new, %scale) {destination_type = "f32"} : (tensor<1x2x2x8xf8E4M3FN>, tensor<f32>) -> tensor<1x2x2x8xf32>
  %et = ov.Transpose(%e, %order) : (tensor<1x6x2x8xf32>, tensor<4xi64>) -> tensor<1x2x6x8xf32>
  %ft = ov.Transpose(%f, %order) : (tensor<1x2x2x8xf32>, tensor<4xi64>) -> tensor<1x2x2x8xf32>
  %l = ov.Concat(%et, %ft) {axis = 2 : i64} : (tensor<1x2x6x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x8x8xf32>
  %z = ov.ScaledDotProductAttention(%q, %l, %plain) {causal = false} : (tensor<1x4x2x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x2x8xf32>
  func.return %y, %z : tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>
}

// CHECK:      ov.Convert(%{{.*}}) {destination_type = "f32"} : (tensor<1x6x2x8xf8E4M3FN>) -> tensor<1x6x2x8xf32>
// CHECK-NOT:  ov.Dequantize
// CHECK:      %[[N:.*]] = ov.Constant #ov.inline<f32 [0.25]>
// CHECK-NEXT: %[[Q:.*]] = ov.Multiply(%{{.*}}, %[[N]])
// CHECK-NEXT: %[[Y:.*]] = ov.ScaledDotProductAttention(%[[Q]]
// CHECK-NEXT: %[[M:.*]] = ov.Constant #ov.inline<f32 [0.25]>
// CHECK-NEXT: ov.Multiply(%[[Y]], %[[M]])
// CHECK:      ov.Dequantize
// CHECK:      ov.Dequantize
// CHECK:      %[[Z:.*]] = ov.ScaledDotProductAttention
// CHECK-NEXT: func.return %{{.*}}, %[[Z]]
