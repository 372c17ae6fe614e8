// PASS: fix-rank{rank=4}
// NUMBERS: no
// VERIFY: no
// The mark states that the variable is neither K nor V.

func.func @main(%x: tensor<1x2x8xf32> {ov.names = "x"}) -> (tensor<1x2x?xf32> {ov.names = "y"}) {
  %a = ov.ReadValue() {variable_id = "lora_state_0/MatMul.A"} : () -> tensor<?x8xf32>
  %kept = ov.Assign(%a) {variable_id = "lora_state_0/MatMul.A"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = ov.MatMul(%x, %a) {transpose_a = false, transpose_b = true} : (tensor<1x2x8xf32>, tensor<?x8xf32>) -> tensor<1x2x?xf32>
  func.return %y : tensor<1x2x?xf32>
}

// CHECK:      %[[A:.*]] = ov.ReadValue() {npuw.no_cache, variable_id = "lora_state_0/MatMul.A"} : () -> tensor<4x8xf32>
// CHECK-NEXT: ov.MatMul(%x, %[[A]])
// CHECK-NOT:  ov.Assign
