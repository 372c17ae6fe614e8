// PASS: store-caches{past=3 block=2}
// NUMBERS: no
// VERIFY: no
// The past consists of one complete block and the tail.

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.value"} : () -> tensor<?x2x?x8xf32>
  %all = ov.Concat(%past, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.value"} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %w = ov.Softmax(%x) {axis = -1 : i64} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ov.MatMul(%w, %all) {transpose_a = false, transpose_b = false} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      %[[FIRST:.*]] = ov.ReadValue() {variable_id = "0.value_block_0"} : () -> tensor<1x2x2x8xf32>
// CHECK-NEXT: %[[TAIL:.*]] = ov.ReadValue() {variable_id = "0.value_block_tail"} : () -> tensor<1x1x2x8xf32>
// CHECK:      %[[A:.*]] = ov.Transpose(%[[FIRST]], {{.*}}
// CHECK:      %[[B:.*]] = ov.Transpose(%[[TAIL]], {{.*}}
// CHECK-NEXT: %[[PAST:.*]] = ov.Concat(%[[A]], %[[B]]) {axis = 2 : i64}
// CHECK-NEXT: ov.Concat(%[[PAST]], %x)
// CHECK:      ov.Assign({{.*}}) {variable_id = "0.value"}
