// PASS: settle-dimensions
// NUMBERS: no

func.func @main(%x: tensor<?x?x6x4xf32> {ov.names = "inputs_embeds"}, %rows: tensor<?x?x?x4xf32> {ov.names = "per_layer_inputs"}) -> (tensor<?x?x6x4xf32> {ov.names = "y"}) {
  %y = ov.Add(%rows, %x) : (tensor<?x?x?x4xf32>, tensor<?x?x6x4xf32>) -> tensor<?x?x6x4xf32>
  func.return %y : tensor<?x?x6x4xf32>
}

// CHECK: %[[ROWS:.*]]: tensor<?x?x6x4xf32> {ov.names = "per_layer_inputs"}
