// PASS: lift-state
// NUMBERS: no
// Arguments and results are appended in the order of the ops, which differs between the two: pairs
// are found by the name behind the prefix.

func.func @main(%x: tensor<1x2xf32> {ov.names = "x"}) -> (tensor<1x2xf32> {ov.names = "y"}) {
  %v = "ov.ReadValue"() {variable_id = "past.0.value"} : () -> tensor<1x2xf32>
  %k = "ov.ReadValue"() {variable_id = "past.0.key"} : () -> tensor<1x2xf32>
  %k2 = ov.Add(%k, %x) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %k3 = ov.Assign(%k2) {variable_id = "past.0.key"} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %v2 = ov.Multiply(%v, %x) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %v3 = ov.Assign(%v2) {variable_id = "past.0.value"} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = ov.Add(%k2, %v2) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: {{.*}} {ov.names = "x"},
// CHECK-SAME:   %[[V:.*]]: tensor<1x2xf32> {ov.names = "vpux_ie_read_value_past.0.value"},
// CHECK-SAME:   %[[K:.*]]: tensor<1x2xf32> {ov.names = "vpux_ie_read_value_past.0.key"})
// CHECK-SAME:   {ov.names = "y"}
// CHECK-SAME:   {ov.names = "vpux_ie_assign_past.0.key"}
// CHECK-SAME:   {ov.names = "vpux_ie_assign_past.0.value"}
// CHECK-NEXT:   %[[K2:.*]] = ov.Add(%[[K]], %[[X]])
// CHECK-NEXT:   %[[V2:.*]] = ov.Multiply(%[[V]], %[[X]])
// CHECK-NEXT:   %[[Y:.*]] = ov.Add(%[[K2]], %[[V2]])
// CHECK-NEXT:   func.return %[[Y]], %[[K2]], %[[V2]]
// CHECK-NOT:  ov.ReadValue
// CHECK-NOT:  ov.Assign
