// PASS: simplify
// Constant indices: a slice, a single element, each element twice; others stay.

func.func @main(%x: tensor<2x4xf32> {ov.names = "x"}) -> (tensor<2x2xf32> {ov.names = "a"}, tensor<2xf32> {ov.names = "b"}, tensor<2x8xf32> {ov.names = "c"}, tensor<2x3xf32> {ov.names = "d"}) {
  %axis = ov.Constant #ov.inline<i64 [1]> : tensor<i64>
  %odd = ov.Constant #ov.inline<i64 [1, 3]> : tensor<2xi64>
  %last = ov.Constant #ov.inline<i64 [-1]> : tensor<i64>
  %twice = ov.Constant #ov.inline<i64 [0, 0, 1, 1, 2, 2, 3, 3]> : tensor<8xi64>
  %any = ov.Constant #ov.inline<i64 [0, 3, 1]> : tensor<3xi64>
  %a = ov.Gather(%x, %odd, %axis) {batch_dims = 0 : i64} : (tensor<2x4xf32>, tensor<2xi64>, tensor<i64>) -> tensor<2x2xf32>
  %b = ov.Gather(%x, %last, %axis) {batch_dims = 0 : i64} : (tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2xf32>
  %c = ov.Gather(%x, %twice, %axis) {batch_dims = 0 : i64} : (tensor<2x4xf32>, tensor<8xi64>, tensor<i64>) -> tensor<2x8xf32>
  %d = ov.Gather(%x, %any, %axis) {batch_dims = 0 : i64} : (tensor<2x4xf32>, tensor<3xi64>, tensor<i64>) -> tensor<2x3xf32>
  func.return %a, %b, %c, %d : tensor<2x2xf32>, tensor<2xf32>, tensor<2x8xf32>, tensor<2x3xf32>
}

// CHECK:      ov.Slice
// CHECK-SAME: -> tensor<2x2xf32>
// CHECK:      ov.Slice
// CHECK:      ov.Reshape{{.*}} -> tensor<2xf32>
// CHECK:      ov.Broadcast{{.*}} -> tensor<2x4x2xf32>
// CHECK:      ov.Reshape{{.*}} -> tensor<2x8xf32>
// CHECK:      ov.Gather{{.*}} -> tensor<2x3xf32>
// CHECK-NOT:  ov.Gather
