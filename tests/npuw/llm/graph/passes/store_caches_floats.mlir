// PASS: store-caches{past=3 element="f16"}
// NUMBERS: no
// VERIFY: no
// Values beyond the range of f16 are clamped to its largest number.

func.func @main(%x: tensor<?x2x?x8xf32> {ov.names = "x"}) -> (tensor<?x2x?x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.value"} : () -> tensor<?x2x?x8xf32>
  %all = ov.Concat(%past, %x) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.value"} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %w = ov.Softmax(%x) {axis = -1 : i64} : (tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %y = ov.MatMul(%w, %all) {transpose_a = false, transpose_b = false} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  func.return %y : tensor<?x2x?x8xf32>
}

// CHECK:      %[[ROWS:.*]] = ov.ReadValue() {variable_id = "0.value"} : () -> tensor<1x3x2x8xf16>
// CHECK-NEXT: ov.Convert(%[[ROWS]]) {destination_type = "f32"}
// CHECK:      %[[HELD:.*]] = ov.Clamp(%x) {min = -6.550400e+04 : f64, max = 6.550400e+04 : f64}
// CHECK-NEXT: %[[NARROW:.*]] = ov.Convert(%[[HELD]]) {destination_type = "f16"}
// CHECK:      %[[NEW:.*]] = ov.Transpose(%[[NARROW]], {{.*}}
// CHECK-NEXT: %[[WIDE:.*]] = ov.Convert(%[[NEW]]) {destination_type = "f32"}
// CHECK:      %[[SEEN:.*]] = ov.Transpose(%[[WIDE]], {{.*}}
// CHECK-NEXT: ov.Concat({{.*}}, %[[SEEN]])
// CHECK-NEXT: ov.Assign(%[[NEW]]) {variable_id = "0.value"}
