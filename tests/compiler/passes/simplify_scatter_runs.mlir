// PASS: simplify
// Exporters write mask[:, :n] = … so: unassigned and assigned slices are concatenated. Slices that
// do not ascend are not changed.

func.func @main(%d: tensor<6xf32> {ov.names = "d"}, %u: tensor<3xf32> {ov.names = "u"}) -> (tensor<6xf32> {ov.names = "x"}, tensor<6xf32> {ov.names = "y"}) {
  %some = ov.Constant #ov.inline<i64 [1, 2, 4]> : tensor<3x1xi64>
  %back = ov.Constant #ov.inline<i64 [4, 2, 1]> : tensor<3x1xi64>
  %x = ov.ScatterNDUpdate(%d, %some, %u) {reduction = "none"} : (tensor<6xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<6xf32>
  %y = ov.ScatterNDUpdate(%d, %back, %u) {reduction = "none"} : (tensor<6xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<6xf32>
  func.return %x, %y : tensor<6xf32>, tensor<6xf32>
}

// CHECK:      func.func @main(%[[D:.*]]: tensor<6xf32> {ov.names = "d"}, %[[U:.*]]: tensor<3xf32>
// CHECK:      %[[A:.*]] = ov.Slice(%[[D]]{{.*}} -> tensor<1xf32>
// CHECK:      %[[B:.*]] = ov.Slice(%[[U]]{{.*}} -> tensor<2xf32>
// CHECK:      %[[C:.*]] = ov.Slice(%[[D]]{{.*}} -> tensor<1xf32>
// CHECK:      %[[E:.*]] = ov.Slice(%[[U]]{{.*}} -> tensor<1xf32>
// CHECK:      %[[F:.*]] = ov.Slice(%[[D]]{{.*}} -> tensor<1xf32>
// CHECK:      %[[X:.*]] = ov.Concat(%[[A]], %[[B]], %[[C]], %[[E]], %[[F]])
// CHECK:      %[[Y:.*]] = ov.ScatterNDUpdate(%[[D]]
// CHECK:      func.return %[[X]], %[[Y]]
