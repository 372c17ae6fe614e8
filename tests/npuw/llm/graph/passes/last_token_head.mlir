// PASS: last-token-head{tokens=2}
// NUMBERS: no

func.func @main(%x: tensor<1x2x4xf32> {ov.names = "x"}) -> (tensor<1x2x3xf32> {ov.names = "logits"}) {
  %table = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.5, 2.5, 3.5]> : tensor<3x4xf32>
  %states = ov.Abs(%x) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %logits = ov.MatMul(%states, %table) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf32>, tensor<3x4xf32>) -> tensor<1x2x3xf32>
  func.return %logits : tensor<1x2x3xf32>
}

// CHECK:      %[[LAST:\w+]]: tensor<1x1x2xf32> {ov.names = "npuw_last_token"}) -> (tensor<1x1x3xf32>
// CHECK-NEXT: %[[TABLE:.*]] = ov.Constant
// CHECK-NEXT: %[[STATES:.*]] = ov.Abs
// CHECK-NEXT: %[[STATE:.*]] = ov.MatMul(%[[LAST]], %[[STATES]]) {{.*}} -> tensor<1x1x4xf32>
// CHECK-NEXT: %[[LOGITS:.*]] = ov.MatMul(%[[STATE]], %[[TABLE]])
// CHECK-NEXT: func.return %[[LOGITS]]
