// PASS: check-tokens{slots=2}
// NUMBERS: no
// Batched conversations support ids, positions and logits: the graph is not changed.

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}, %p: tensor<?x?xi64> {ov.names = "position_ids"}) -> (tensor<?x?xi64> {ov.names = "logits"}) {
  %y = ov.Add(%ids, %p) : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64>
  func.return %y : tensor<?x?xi64>
}

// CHECK:      func.func @main(%[[IDS:.*]]: tensor<?x?xi64> {ov.names = "input_ids"}, %[[P:.*]]: tensor<?x?xi64> {ov.names = "position_ids"})
// CHECK-NEXT:   %[[Y:.*]] = ov.Add(%[[IDS]], %[[P]])
// CHECK-NEXT:   func.return %[[Y]]
