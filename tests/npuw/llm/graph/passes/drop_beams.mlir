// PASS: drop-beams
// NUMBERS: no

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}, %beams: tensor<?xi32> {ov.names = "beam_idx"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %past = "ov.ReadValue"() {variable_id = "0.key"} : () -> tensor<?x2x?x8xf32>
  %own = ov.Gather(%past, %beams, %axis) {batch_dims = 0 : i64} : (tensor<?x2x?x8xf32>, tensor<?xi32>, tensor<i64>) -> tensor<?x2x?x8xf32>
  %y = ov.Concat(%own, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<?x2x?x8xf32> {ov.names = "x"}) ->
// CHECK:      %[[PAST:.*]] = ov.ReadValue()
// CHECK-NEXT: ov.Concat(%[[PAST]], %[[X]])
