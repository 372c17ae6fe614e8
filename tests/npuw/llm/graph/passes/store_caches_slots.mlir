// PASS: store-caches{past=3 slots=2}
// NUMBERS: no
// VERIFY: no
// Each conversation has a separate variable; one row of each is assigned.

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.value"} : () -> tensor<?x2x?x8xf32>
  %all = ov.Concat(%past, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.value"} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %w = ov.Softmax(%x) {axis = -1 : i64} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ov.MatMul(%w, %all) {transpose_a = false, transpose_b = false} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      %[[A:.*]] = ov.ReadValue() {variable_id = "0.value@slot0"} : () -> tensor<1x3x2x8xf32>
// CHECK-NEXT: %[[B:.*]] = ov.ReadValue() {variable_id = "0.value@slot1"} : () -> tensor<1x3x2x8xf32>
// CHECK-NEXT: ov.Concat(%[[A]], %[[B]]) {axis = 0 : i64} : {{.*}} -> tensor<2x3x2x8xf32>
// CHECK:      %[[ROWS:.*]] = ov.Constant #ov.inline<i64 [1, -1, 0, 0]>
// CHECK-NEXT: %[[NEW:.*]] = ov.Reshape({{.*}}, %[[ROWS]])
// CHECK-NEXT: ov.Assign(%[[NEW]]) {variable_id = "0.value"}
