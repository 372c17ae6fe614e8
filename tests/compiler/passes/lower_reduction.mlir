// PASS: lower-reduction
// The outer dimension: a chain of sums; both: the rows first, in a kernel; the last: with its dimension
// kept, and then without. A row-wise reduction stays. A mean over the outer dimension is a sum and
// a division.

func.func @main(%x: tensor<3x2x4xf32> {ov.names = "x"}) -> (tensor<2x4xf32> {ov.names = "a"}, tensor<1x2x1xf32> {ov.names = "b"}, tensor<3x2xf32> {ov.names = "c"}, tensor<3x2x1xf32> {ov.names = "d"}, tensor<2x4xf32> {ov.names = "e"}) {
  %outer = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %both = ov.Constant #ov.inline<i64 [-1, 0]> : tensor<2xi64>
  %last = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %a = ov.ReduceSum(%x, %outer) {keep_dims = false} : (tensor<3x2x4xf32>, tensor<1xi64>) -> tensor<2x4xf32>
  %b = ov.ReduceMax(%x, %both) {keep_dims = true} : (tensor<3x2x4xf32>, tensor<2xi64>) -> tensor<1x2x1xf32>
  %c = ov.ReduceMean(%x, %last) {keep_dims = false} : (tensor<3x2x4xf32>, tensor<1xi64>) -> tensor<3x2xf32>
  %d = ov.ReduceL2(%x, %last) {keep_dims = true} : (tensor<3x2x4xf32>, tensor<1xi64>) -> tensor<3x2x1xf32>
  %e = ov.ReduceMean(%x, %outer) {keep_dims = false} : (tensor<3x2x4xf32>, tensor<1xi64>) -> tensor<2x4xf32>
  func.return %a, %b, %c, %d, %e : tensor<2x4xf32>, tensor<1x2x1xf32>, tensor<3x2xf32>, tensor<3x2x1xf32>, tensor<2x4xf32>
}

// CHECK:       %[[P:.*]], %[[Q:.*]], %[[R:.*]] = ov.Split(%{{.*}} -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
// CHECK-NEXT:  %[[PQ:.*]] = ov.Add(%[[P]], %[[Q]])
// CHECK-NEXT:  %[[PQR:.*]] = ov.Add(%[[PQ]], %[[R]])
// CHECK:       ov.Reshape(%[[PQR]], %{{.*}} -> tensor<2x4xf32>
// CHECK:       %[[ROWS:.*]] = ov.ReduceMax(%{{.*}} {keep_dims = true} {{.*}} -> tensor<3x2x1xf32>
// CHECK:       ov.Split(%[[ROWS]],
// CHECK:       ov.Maximum
// CHECK:       ov.Maximum
// CHECK:       %[[MEAN:.*]] = ov.ReduceMean({{.*}} {keep_dims = true}
// CHECK:       ov.Reshape(%[[MEAN]], %{{.*}} -> tensor<3x2xf32>
// CHECK:       ov.ReduceL2
// CHECK:       ov.Split
// CHECK:       ov.Add
// CHECK-NEXT:  %[[SUM:.*]] = ov.Add
// CHECK-NEXT:  %[[COUNT:.*]] = ov.Constant #ov.inline<f32 [3.0]>
// CHECK-NEXT:  ov.Divide(%[[SUM]], %[[COUNT]])
