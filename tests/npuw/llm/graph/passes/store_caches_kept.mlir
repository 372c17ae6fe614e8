// PASS: store-caches{past=3}
// NUMBERS: no
// A variable that another pass has marked is neither K nor V.

func.func @main(%x: tensor<1x4xf32> {ov.names = "x"}) -> (tensor<1x4xf32> {ov.names = "y"}) {
  %a = ov.ReadValue() {npuw.no_cache, variable_id = "adapter"} : () -> tensor<1x4xf32>
  %y = ov.Add(%x, %a) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// CHECK:     ov.ReadValue() {variable_id = "adapter"} : () -> tensor<1x4xf32>
// CHECK-NOT: npuw.no_cache
