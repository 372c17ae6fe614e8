// PASS: fix-rank{rank=4 slots=2}
// NUMBERS: no
// VERIFY: no
// Each conversation has separate adapters, which are joined to a batch like its tokens.

func.func @main(%x: tensor<1x2x8xf32> {ov.names = "x"}) -> (tensor<1x2x?xf32> {ov.names = "y"}) {
  %a = ov.ReadValue() {variable_id = "lora_state_0/MatMul.A"} : () -> tensor<?x8xf32>
  %kept = ov.Assign(%a) {variable_id = "lora_state_0/MatMul.A"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = ov.MatMul(%x, %a) {transpose_a = false, transpose_b = true} : (tensor<1x2x8xf32>, tensor<?x8xf32>) -> tensor<1x2x?xf32>
  func.return %y : tensor<1x2x?xf32>
}

// CHECK:      %[[FIRST:.*]] = ov.ReadValue() {npuw.no_cache, variable_id = "lora_state_0/MatMul.A@slot0"} : () -> tensor<1x4x8xf32>
// CHECK-NEXT: %[[SECOND:.*]] = ov.ReadValue() {npuw.no_cache, variable_id = "lora_state_0/MatMul.A@slot1"} : () -> tensor<1x4x8xf32>
// CHECK-NEXT: %[[A:.*]] = ov.Concat(%[[FIRST]], %[[SECOND]]) {axis = 0 : i64}
// CHECK-NEXT: ov.MatMul(%x, %[[A]])
