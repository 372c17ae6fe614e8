// PASS: head-alone{rows=5}
// NUMBERS: no

func.func @main(%x: tensor<1x2x4xf32> {ov.names = "x"}) -> (tensor<1x2x3xf32> {ov.names = "logits"}) {
  %table = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.5, 2.5, 3.5]> : tensor<3x4xf32>
  %states = ov.Abs(%x) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %logits = ov.MatMul(%states, %table) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf32>, tensor<3x4xf32>) -> tensor<1x2x3xf32>
  func.return %logits : tensor<1x2x3xf32>
}

// CHECK:      func.func @main(%[[STATES:.*]]: tensor<1x5x4xf32> {ov.names = "npuw_output_embed"})
// CHECK-NEXT: %[[TABLE:.*]] = ov.Constant
// CHECK-NEXT: %[[LOGITS:.*]] = ov.MatMul(%[[STATES]], %[[TABLE]]) {{.*}} -> tensor<1x5x3xf32>
// CHECK-NEXT: func.return %[[LOGITS]]
