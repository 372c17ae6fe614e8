// PASS: simplify
// Exporters write x[:, 1::2] = … so: data is flat, and indices are in row-major order. Columns are
// concatenated; places that are not columns, or in another order, stay.

func.func @main(%d: tensor<2x4xf32> {ov.names = "d"}, %u: tensor<4xf32> {ov.names = "u"}) -> (tensor<8xf32> {ov.names = "x"}, tensor<8xf32> {ov.names = "y"}) {
  %minus = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>
  %odd = ov.Constant #ov.inline<i64 [1, 3, 5, 7]> : tensor<4x1xi64>
  %mixed = ov.Constant #ov.inline<i64 [1, 3, 5, 6]> : tensor<4x1xi64>
  %flat = ov.Reshape(%d, %minus) {special_zero = false} : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<8xf32>
  %x = ov.ScatterNDUpdate(%flat, %odd, %u) {reduction = "none"} : (tensor<8xf32>, tensor<4x1xi64>, tensor<4xf32>) -> tensor<8xf32>
  %y = ov.ScatterNDUpdate(%flat, %mixed, %u) {reduction = "sum"} : (tensor<8xf32>, tensor<4x1xi64>, tensor<4xf32>) -> tensor<8xf32>
  func.return %x, %y : tensor<8xf32>, tensor<8xf32>
}

// CHECK:      func.func @main(%[[D:.*]]: tensor<2x4xf32> {ov.names = "d"}, %[[U:.*]]: tensor<4xf32>
// CHECK:      %[[NEW:.*]] = ov.Reshape(%[[U]]{{.*}} -> tensor<2x2xf32>
// CHECK:      %[[A:.*]] = ov.Slice(%[[D]]{{.*}} -> tensor<2x1xf32>
// CHECK:      %[[B:.*]] = ov.Slice(%[[NEW]]{{.*}} -> tensor<2x1xf32>
// CHECK:      %[[C:.*]] = ov.Slice(%[[D]]{{.*}} -> tensor<2x1xf32>
// CHECK:      %[[E:.*]] = ov.Slice(%[[NEW]]{{.*}} -> tensor<2x1xf32>
// CHECK:      %[[JOINED:.*]] = ov.Concat(%[[A]], %[[B]], %[[C]], %[[E]]) {axis = 1 : i64}
// CHECK:      %[[X:.*]] = ov.Reshape(%[[JOINED]]{{.*}} -> tensor<8xf32>
// CHECK:      %[[Y:.*]] = ov.ScatterNDUpdate(
// CHECK:      func.return %[[X]], %[[Y]]
