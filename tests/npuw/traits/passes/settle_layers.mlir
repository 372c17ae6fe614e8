// PASS: settle-layers
// NUMBERS: no
// The number of layers is that of the rows to which per_layer_inputs are added.

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}, %rows: tensor<?x?x?x4xf32> {ov.names = "per_layer_inputs"}) -> (tensor<?x?x6x4xf32> {ov.names = "logits"}) {
  %h = ov.ReadValue() {variable_id = "h"} : () -> tensor<?x?x6x4xf32>
  %y = ov.Add(%rows, %h) : (tensor<?x?x?x4xf32>, tensor<?x?x6x4xf32>) -> tensor<?x?x6x4xf32>
  func.return %y : tensor<?x?x6x4xf32>
}

// CHECK: tensor<?x?x6x4xf32> {ov.names = "per_layer_inputs"}
