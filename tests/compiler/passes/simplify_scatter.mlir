// PASS: simplify
// Some exporters write mask[:, :, :, :n] = … so, where n is the full length; an update in another
// order stays.

func.func @main(%d: tensor<2x3xf32> {ov.names = "d"}, %u: tensor<2x3xf32> {ov.names = "u"}, %v: tensor<6xf32> {ov.names = "v"}) -> (tensor<2x3xf32> {ov.names = "x"}, tensor<2x3xf32> {ov.names = "y"}, tensor<2x3xf32> {ov.names = "z"}) {
  %rows = ov.Constant #ov.inline<i64 [0, 1]> : tensor<2x1xi64>
  %swapped = ov.Constant #ov.inline<i64 [1, 0]> : tensor<2x1xi64>
  %all = ov.Constant #ov.inline<i64 [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2]> : tensor<6x2xi64>
  %x = ov.ScatterNDUpdate(%d, %rows, %u) {reduction = "none"} : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = ov.ScatterNDUpdate(%d, %all, %v) {reduction = "none"} : (tensor<2x3xf32>, tensor<6x2xi64>, tensor<6xf32>) -> tensor<2x3xf32>
  %z = ov.ScatterNDUpdate(%d, %swapped, %u) {reduction = "none"} : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %x, %y, %z : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK:      func.func @main(%[[D:.*]]: tensor<2x3xf32> {ov.names = "d"}, %[[U:.*]]: tensor<2x3xf32> {ov.names = "u"}, %[[V:.*]]: tensor<6xf32>
// CHECK-DAG:  %[[Y:.*]] = ov.Reshape(%[[V]]
// CHECK-DAG:  %[[Z:.*]] = ov.ScatterNDUpdate(%[[D]]
// CHECK:      func.return %[[U]], %[[Y]], %[[Z]]
