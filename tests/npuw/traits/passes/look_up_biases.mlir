// PASS: look-up-biases{tokens=2 past=3}
// NUMBERS: no
// VERIFY: no
// The newest token's bias is the last one, at index 7; older tokens have lower indices.

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}) -> (tensor<1x?xf32> {ov.names = "y"}) {
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %first = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %third = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %size = ov.Constant #ov.inline<i64 [8]> : tensor<1xi64>
  %table = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<1x8xf32>
  %cache = ov.ReadValue() {variable_id = "0.key"} : () -> tensor<?x1x?x4xf32>
  %shape = ov.ShapeOf(%cache) {output_type = "i64"} : (tensor<?x1x?x4xf32>) -> tensor<4xi64>
  %stored = ov.Gather(%shape, %third, %axis) {batch_dims = 0 : i64} : (tensor<4xi64>, tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %taken = ov.ShapeOf(%ids) {output_type = "i64"} : (tensor<?x?xi64>) -> tensor<2xi64>
  %new = ov.Gather(%taken, %first, %axis) {batch_dims = 0 : i64} : (tensor<2xi64>, tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %total = ov.Add(%stored, %new) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %start = ov.Subtract(%size, %total) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %y = ov.Slice(%table, %start, %size, %first, %first) : (tensor<1x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?xf32>
  func.return %y : tensor<1x?xf32>
}

// CHECK:      %[[POSITIONS:\w+]]: tensor<1x2xi64> {ov.names = "cache_position"})
// CHECK:      %[[OWN:.*]] = ov.Slice(%[[POSITIONS]], {{.*}}
// CHECK:      %[[NEW:.*]] = ov.Reshape(%[[OWN]], {{.*}} -> tensor<2xi64>
// CHECK:      %[[ROWS:.*]] = ov.Concat({{.*}}, %[[NEW]]) {{.*}} -> tensor<5xi64>
// CHECK:      %[[NEWEST:.*]] = ov.Slice(%[[NEW]], {{.*}} -> tensor<1xi64>
// CHECK-NEXT: %[[BEHIND:.*]] = ov.Subtract(%[[ROWS]], %[[NEWEST]])
// CHECK-NEXT: %[[LAST:.*]] = ov.Constant #ov.inline<i64 [7]>
// CHECK-NEXT: %[[AT:.*]] = ov.Add(%[[BEHIND]], %[[LAST]])
// CHECK-NEXT: %[[INDEX:.*]] = ov.Minimum(%[[AT]], %[[LAST]])
// CHECK:      ov.Gather({{.*}}, %[[INDEX]], {{.*}} -> tensor<5x1xf32>
// CHECK:      func.return %y : tensor<1x5xf32>
