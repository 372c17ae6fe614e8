// PASS: static-inputs{tokens=2 past=3 slots=4}
// NUMBERS: no
// VERIFY: no

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}, %mask: tensor<?x?xi64> {ov.names = "attention_mask"}, %p: tensor<?x?xi64> {ov.names = "position_ids"}) -> (tensor<?x?xi64> {ov.names = "y"}) {
  %y = ov.Add(%ids, %p) : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64>
  func.return %y : tensor<?x?xi64>
}

// CHECK:      tensor<4x2xi64> {ov.names = "input_ids"}
// CHECK-SAME: tensor<4x5xi64> {ov.names = "attention_mask"}
// CHECK-SAME: tensor<4x2xi64> {ov.names = "position_ids"}
