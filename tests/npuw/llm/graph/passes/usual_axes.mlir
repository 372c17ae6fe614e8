// PASS: usual-axes{sequences=1 tokens=0}
// NUMBERS: no
// ChatGLM's cache [tokens, sequences, heads, width]; its readers see the original axes.

func.func @main(%x: tensor<?x1x2x8xf32> {ov.names = "x"}) -> (tensor<?x1x2x8xf32> {ov.names = "y"}) {
  %past = "ov.ReadValue"() {variable_id = "0.key"} : () -> tensor<?x1x2x8xf32>
  %all = ov.Concat(%past, %x) {axis = 0 : i64} : (tensor<?x1x2x8xf32>, tensor<?x1x2x8xf32>) -> tensor<?x1x2x8xf32>
  %kept = ov.Assign(%all) {variable_id = "0.key"} : (tensor<?x1x2x8xf32>) -> tensor<?x1x2x8xf32>
  %y = ov.Abs(%all) : (tensor<?x1x2x8xf32>) -> tensor<?x1x2x8xf32>
  func.return %y : tensor<?x1x2x8xf32>
}

// CHECK:      %[[PAST:.*]] = ov.ReadValue() {variable_id = "0.key"} : () -> tensor<1x2x?x8xf32>
// CHECK:      %[[NEW:.*]] = ov.Transpose({{.*}}) : (tensor<?x1x2x8xf32>, tensor<4xi64>) -> tensor<1x2x?x8xf32>
// CHECK-NEXT: %[[ALL:.*]] = ov.Concat(%[[PAST]], %[[NEW]]) {axis = 2 : i64}
// CHECK:      %[[SEEN:.*]] = ov.Transpose(%[[ALL]], {{.*}}) : {{.*}} -> tensor<?x1x2x8xf32>
// CHECK-NEXT: ov.Assign(%[[ALL]]) {variable_id = "0.key"}
// CHECK-NEXT: ov.Abs(%[[SEEN]])
