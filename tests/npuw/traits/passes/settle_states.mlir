// PASS: settle-states
// NUMBERS: no
// VERIFY: no

func.func @main(%x: tensor<?x?x4xf32> {ov.names = "inputs_embeds"}, %states: tensor<?x?x?xf32> {ov.names = "hidden_states"}) -> (tensor<?x?x4xf32> {ov.names = "last_hidden_state"}) {
  %y = ov.Add(%states, %x) : (tensor<?x?x?xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  func.return %y : tensor<?x?x4xf32>
}

// CHECK: tensor<?x?x4xf32> {ov.names = "hidden_states"}
