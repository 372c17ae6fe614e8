// PASS: check-ports{known="eagle_tree_mask"}
// NUMBERS: no
// token_type_ids is unread; another pass handles eagle_tree_mask.

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}, %types: tensor<?x?xi64> {ov.names = "token_type_ids"}, %mask: tensor<?x?xi64> {ov.names = "attention_mask"}, %tree: tensor<1x1x?x?xf32> {ov.names = "eagle_tree_mask"}) -> (tensor<?x?xi64> {ov.names = "logits"}) {
  %past = "ov.ReadValue"() {variable_id = "0.key"} : () -> tensor<?x?xi64>
  %y = ov.Add(%ids, %past) : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64>
  func.return %y : tensor<?x?xi64>
}

// CHECK:     "input_ids"
// CHECK-NOT: token_type_ids
// CHECK:     "attention_mask"
// CHECK:     "eagle_tree_mask"
