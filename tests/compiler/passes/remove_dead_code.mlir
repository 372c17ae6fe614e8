// PASS: remove-dead-code
// A variable that is only read is removed; one that is assigned stays.

func.func @main(%x: tensor<1x2xf32> {ov.names = "x"}) -> (tensor<1x2xf32> {ov.names = "y"}) {
  %unused = ov.Exp(%x) : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %dead = "ov.ReadValue"() {variable_id = "dead"} : () -> tensor<1x2xf32>
  %old = "ov.ReadValue"() {variable_id = "kept"} : () -> tensor<1x2xf32>
  %new = ov.Add(%old, %x) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %stored = ov.Assign(%new) {variable_id = "kept"} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = ov.Sqrt(%x) : (tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}

// CHECK-NOT: ov.Exp
// CHECK-NOT: "dead"
// CHECK:     ov.ReadValue{{.*}}"kept"
// CHECK:     ov.Assign{{.*}}"kept"
// CHECK:     ov.Sqrt
