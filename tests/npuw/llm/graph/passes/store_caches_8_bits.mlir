// PASS: store-caches{past=3 element="i8"}
// NUMBERS: no
// VERIFY: no
// Each row has a scale in a separate variable; attention reads new rows as stored.

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.value"} : () -> tensor<?x2x?x8xf32>
  %all = ov.Concat(%past, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.value"} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %w = ov.Softmax(%x) {axis = -1 : i64} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ov.MatMul(%w, %all) {transpose_a = false, transpose_b = false} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      %[[ROWS:.*]] = ov.ReadValue() {variable_id = "0.value"} : () -> tensor<1x3x2x8xi8>
// CHECK-NEXT: %[[SCALES:.*]] = ov.ReadValue() {variable_id = "0.value.scale"} : () -> tensor<1x3x2x1xf16>
// CHECK-NEXT: ov.Dequantize(%[[ROWS]], %[[SCALES]])
// CHECK:      %[[NEW:.*]] = ov.Transpose({{.*}}) : (tensor<?x2x?x8xi8>, {{.*}}
// CHECK:      %[[SCALE:.*]] = ov.Transpose({{.*}}) : (tensor<?x2x?x1xf16>, {{.*}}
// CHECK-NEXT: %[[STORED:.*]] = ov.Dequantize(%[[NEW]], %[[SCALE]])
// CHECK:      %[[SEEN:.*]] = ov.Transpose(%[[STORED]], {{.*}}
// CHECK-NEXT: ov.Concat({{.*}}, %[[SEEN]])
// CHECK-NEXT: ov.Assign(%[[NEW]]) {variable_id = "0.value"}
// CHECK-NEXT: ov.Assign(%[[SCALE]]) {variable_id = "0.value.scale"}
