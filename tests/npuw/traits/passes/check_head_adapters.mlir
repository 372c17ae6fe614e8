// PASS: check-head-adapters{conversations=2}
// NUMBERS: no
// The LM head has no adapter: the graph is not changed.

func.func @main(%x: tensor<1x2xf32> {ov.names = "npuw_output_embed"}) -> (tensor<1x2xf32> {ov.names = "logits"}) {
  %y = ov.Abs(%x) : (tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<1x2xf32> {ov.names = "npuw_output_embed"})
// CHECK-NEXT: ov.Abs(%[[X]])
