// PASS: lower-scatter
// TOLERANCE: 0
// Weights of the chosen experts go to their places, one column of indices at a time; sums accumulate.

func.func @main(%x: tensor<3x5xf32> {ov.names = "x"}, %d: tensor<3x5xf32> {ov.names = "d"}) -> (tensor<3x5xf32> {ov.names = "y"}, tensor<3x5xf32> {ov.names = "z"}) {
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<i64>
  %last = ov.Constant #ov.inline<i64 [-1]> : tensor<i64>
  %zeros = ov.Constant #ov.inline<f32 [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]> : tensor<3x5xf32>
  %w, %ids = ov.TopK(%x, %two) {axis = -1 : i64, mode = "max", sort = "value", stable = false, index_element_type = "i64"} : (tensor<3x5xf32>, tensor<i64>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %narrow = ov.Convert(%ids) {destination_type = "i32"} : (tensor<3x2xi64>) -> tensor<3x2xi32>
  %y = ov.ScatterElementsUpdate(%zeros, %narrow, %w, %last) {reduction = "none", use_init_val = true} : (tensor<3x5xf32>, tensor<3x2xi32>, tensor<3x2xf32>, tensor<i64>) -> tensor<3x5xf32>
  %z = ov.ScatterElementsUpdate(%d, %ids, %w, %last) {reduction = "sum", use_init_val = true} : (tensor<3x5xf32>, tensor<3x2xi64>, tensor<3x2xf32>, tensor<i64>) -> tensor<3x5xf32>
  func.return %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
}

// CHECK:       %[[I0:.*]], %[[I1:.*]] = ov.Split(%{{.*}} -> (tensor<3x1xi32>, tensor<3x1xi32>)
// CHECK:       %[[W0:.*]], %[[W1:.*]] = ov.Split(%{{.*}} -> (tensor<3x1xf32>, tensor<3x1xf32>)
// CHECK-NEXT:  %[[H0:.*]] = ov.Equal(%[[C:.*]], %[[I0]])
// CHECK-NEXT:  %[[Y0:.*]] = ov.Select(%[[H0]], %[[W0]], %{{.*}})
// CHECK-NEXT:  %[[H1:.*]] = ov.Equal(%[[C]], %[[I1]])
// CHECK-NEXT:  %[[Y1:.*]] = ov.Select(%[[H1]], %[[W1]], %[[Y0]])
// CHECK:       ov.Add
// CHECK:       ov.Add
// CHECK-NOT:   ov.ScatterElementsUpdate
