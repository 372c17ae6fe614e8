// PASS: store-caches{past=3}
// NUMBERS: no
// VERIFY: no
// Rows are read and assigned token by token.

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.value"} : () -> tensor<?x2x?x8xf32>
  %all = ov.Concat(%past, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.value"} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %w = ov.Softmax(%x) {axis = -1 : i64} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ov.MatMul(%w, %all) {transpose_a = false, transpose_b = false} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      %[[ROWS:.*]] = ov.ReadValue() {variable_id = "0.value"} : () -> tensor<1x3x2x8xf32>
// CHECK:      %[[PAST:.*]] = ov.Transpose(%[[ROWS]], {{.*}} -> tensor<1x2x3x8xf32>
// CHECK-NEXT: %[[ALL:.*]] = ov.Concat(%[[PAST]], %x)
// CHECK:      %[[NEW:.*]] = ov.Transpose(%x, {{.*}} -> tensor<?x?x2x8xf32>
// CHECK-NEXT: ov.Assign(%[[NEW]]) {variable_id = "0.value"}
// CHECK:      ov.MatMul({{.*}}, %[[ALL]])
