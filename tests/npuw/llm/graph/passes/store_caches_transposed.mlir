// PASS: store-caches{past=3 room=5}
// NUMBERS: no
// VERIFY: no
// V is stored channel by channel, in a buffer of five rows.

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.value"} : () -> tensor<?x2x?x8xf32>
  %all = ov.Concat(%past, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.value"} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %w = ov.Softmax(%x) {axis = -1 : i64} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ov.MatMul(%w, %all) {transpose_a = false, transpose_b = false} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      %[[BUFFER:.*]] = ov.ReadValue() {variable_id = "0.value@transposed"} : () -> tensor<1x2x8x5xf32>
// CHECK:      %[[COLUMNS:.*]] = ov.Slice(%[[BUFFER]], {{.*}} -> tensor<1x2x8x3xf32>
// CHECK:      %[[ROWS:.*]] = ov.Transpose(%[[COLUMNS]], {{.*}} -> tensor<1x3x2x8xf32>
// CHECK:      %[[PAST:.*]] = ov.Transpose(%[[ROWS]], {{.*}} -> tensor<1x2x3x8xf32>
// CHECK-NEXT: ov.Concat(%[[PAST]], %x)
// CHECK:      %[[NEW:.*]] = ov.Transpose({{.*}} -> tensor<?x2x8x?xf32>
// CHECK-NEXT: ov.Assign(%[[NEW]]) {variable_id = "0.value@transposed"}
