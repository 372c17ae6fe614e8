// PASS: lower-scatter
// TOLERANCE: 0
// Indices of unknown origin may count from the end, so both forms are compared; unsigned ones are compared once.

func.func @main(%x: tensor<3x5xf32> {ov.names = "x"}, %d: tensor<3x5xf32> {ov.names = "d"}) -> (tensor<3x5xf32> {ov.names = "y"}, tensor<3x5xf32> {ov.names = "z"}) {
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<i64>
  %three = ov.Constant #ov.inline<i64 [3]> : tensor<i64>
  %last = ov.Constant #ov.inline<i64 [-1]> : tensor<i64>
  %w, %ids = ov.TopK(%x, %two) {axis = -1 : i64, mode = "max", sort = "value", stable = false, index_element_type = "i64"} : (tensor<3x5xf32>, tensor<i64>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %either = ov.Subtract(%ids, %three) : (tensor<3x2xi64>, tensor<i64>) -> tensor<3x2xi64>
  %y = ov.ScatterElementsUpdate(%d, %either, %w, %last) {reduction = "none", use_init_val = true} : (tensor<3x5xf32>, tensor<3x2xi64>, tensor<3x2xf32>, tensor<i64>) -> tensor<3x5xf32>
  %plain = ov.Convert(%ids) {destination_type = "u64"} : (tensor<3x2xi64>) -> tensor<3x2xui64>
  %same = ov.Abs(%plain) : (tensor<3x2xui64>) -> tensor<3x2xui64>
  %z = ov.ScatterElementsUpdate(%d, %same, %w, %last) {reduction = "sum", use_init_val = true} : (tensor<3x5xf32>, tensor<3x2xui64>, tensor<3x2xf32>, tensor<i64>) -> tensor<3x5xf32>
  func.return %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
}

// CHECK:       %[[I0:.*]], %[[I1:.*]] = ov.Split(%{{.*}} -> (tensor<3x1xi64>, tensor<3x1xi64>)
// CHECK:       %[[H0:.*]] = ov.Equal(%[[C:.*]], %[[I0]])
// CHECK-NEXT:  %[[T0:.*]] = ov.Equal(%[[D:.*]], %[[I0]])
// CHECK-NEXT:  %[[P0:.*]] = ov.LogicalOr(%[[H0]], %[[T0]])
// CHECK-NEXT:  %[[Y0:.*]] = ov.Select(%[[P0]], %{{.*}}, %{{.*}})
// CHECK-NEXT:  %[[H1:.*]] = ov.Equal(%[[C]], %[[I1]])
// CHECK-NEXT:  %[[T1:.*]] = ov.Equal(%[[D]], %[[I1]])
// CHECK-NEXT:  %[[P1:.*]] = ov.LogicalOr(%[[H1]], %[[T1]])
// CHECK-NEXT:  ov.Select(%[[P1]], %{{.*}}, %[[Y0]])
// CHECK-NOT:   ov.LogicalOr
// CHECK-NOT:   ov.ScatterElementsUpdate
