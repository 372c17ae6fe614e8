// PASS: compare-window-tables{tokens=2 past=3}
// NUMBERS: no
// VERIFY: no
// In the table each query attends to itself and the key before it.

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}, %x: tensor<?x1x?x4xf32> {ov.names = "x"}) -> (tensor<1x1x?x?xi1> {ov.names = "y"}) {
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %first = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %third = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %ones = ov.Constant #ov.inline<i64 [1, 1]> : tensor<2xi64>
  %axes = ov.Constant #ov.inline<i64 [2, 3]> : tensor<2xi64>
  %table = ov.Constant #ov.inline<boolean [true, false, false, true, true, false, false, true, true]> : tensor<1x1x3x3xi1>
  %cache = "ov.ReadValue"() {variable_id = "0.key"} : () -> tensor<?x1x?x4xf32>
  %shape = ov.ShapeOf(%cache) {output_type = "i64"} : (tensor<?x1x?x4xf32>) -> tensor<4xi64>
  %stored = ov.Gather(%shape, %third, %axis) {batch_dims = 0 : i64} : (tensor<4xi64>, tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %taken = ov.ShapeOf(%ids) {output_type = "i64"} : (tensor<?x?xi64>) -> tensor<2xi64>
  %new = ov.Gather(%taken, %first, %axis) {batch_dims = 0 : i64} : (tensor<2xi64>, tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %total = ov.Add(%stored, %new) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %start = ov.Concat(%stored, %zero) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %stop = ov.Concat(%total, %total) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = ov.Slice(%table, %start, %stop, %ones, %axes) : (tensor<1x1x3x3xi1>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<1x1x?x?xi1>
  func.return %y : tensor<1x1x?x?xi1>
}

// CHECK:      %[[POSITIONS:\w+]]: tensor<1x2xi64> {ov.names = "cache_position"})
// CHECK:      %[[DISTANCE:.*]] = ov.Subtract({{.*}}) : (tensor<1x1x2x1xi64>, tensor<1x1x1x5xi64>)
// CHECK-NEXT: %[[NEAREST:.*]] = ov.Constant #ov.inline<i64 [0]>
// CHECK-NEXT: %[[FARTHEST:.*]] = ov.Constant #ov.inline<i64 [1]>
// CHECK-NEXT: %[[NEAR:.*]] = ov.LessEqual(%[[NEAREST]], %[[DISTANCE]])
// CHECK-NEXT: %[[FAR:.*]] = ov.LessEqual(%[[DISTANCE]], %[[FARTHEST]])
// CHECK-NEXT: %[[Y:.*]] = ov.LogicalAnd(%[[NEAR]], %[[FAR]])
// CHECK-NEXT: func.return %[[Y]]
