// PASS: lower-topk
// TOLERANCE: 0
// One round per element: the maximum, its first position, and the rest of the row. Among equal
// elements the first ones are chosen.

func.func @main(%x: tensor<3x5xf32> {ov.names = "x"}, %n: tensor<2x4xi64> {ov.names = "n"}) -> (tensor<3x2xf32> {ov.names = "v"}, tensor<3x2xi64> {ov.names = "i"}, tensor<2x3xi32> {ov.names = "tied"}, tensor<2x1xf32> {ov.names = "least"}) {
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<i64>
  %v, %i = ov.TopK(%x, %two) {axis = -1 : i64, mode = "max", sort = "value", stable = false, index_element_type = "i64"} : (tensor<3x5xf32>, tensor<i64>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %f = ov.Convert(%n) {destination_type = "f32"} : (tensor<2x4xi64>) -> tensor<2x4xf32>
  %half = ov.Constant #ov.inline<f32 [0.5]> : tensor<f32>
  %pairs = ov.Multiply(%f, %half) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %ties = ov.Floor(%pairs) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %three = ov.Constant #ov.inline<i64 [3]> : tensor<i64>
  %u, %tied = ov.TopK(%ties, %three) {axis = 1 : i64, mode = "max", sort = "none", stable = false, index_element_type = "i32"} : (tensor<2x4xf32>, tensor<i64>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<i64>
  %least, %where = ov.TopK(%f, %one) {axis = 1 : i64, mode = "min", sort = "index", stable = false, index_element_type = "i32"} : (tensor<2x4xf32>, tensor<i64>) -> (tensor<2x1xf32>, tensor<2x1xi32>)
  func.return %v, %i, %tied, %least : tensor<3x2xf32>, tensor<3x2xi64>, tensor<2x3xi32>, tensor<2x1xf32>
}

// CHECK:       %[[V0:.*]] = ov.ReduceMax(%[[X:.*]], %{{.*}}) {keep_dims = true} : (tensor<3x5xf32>
// CHECK-NEXT:  %[[HIT:.*]] = ov.Equal(%[[X]], %[[V0]])
// CHECK-NEXT:  %[[PLACES:.*]] = ov.Select(%[[HIT]],
// CHECK-NEXT:  %[[FIRST:.*]] = ov.ReduceMin(%[[PLACES]],
// CHECK-NEXT:  %[[TAKEN:.*]] = ov.Equal(%{{.*}}, %[[FIRST]])
// CHECK-NEXT:  %[[LEFT:.*]] = ov.Select(%[[TAKEN]], %{{.*}}, %[[X]])
// CHECK:       %[[V1:.*]] = ov.ReduceMax(%[[LEFT]],
// CHECK:       ov.Concat(%[[FIRST]],
// CHECK:       ov.Concat(%[[V0]], %[[V1]])
// CHECK:       ov.Convert{{.*}} -> tensor<3x2xi64>
// CHECK:       ov.ReduceMin
// CHECK-NOT:   ov.TopK
