// PASS: mark-long-inferences
// NUMBERS: no
// Inferences are long from position 4 on, where max + 1 > 4.

func.func @main(%p: tensor<?x?xi64> {ov.names = "position_ids"}, %x: tensor<1x2xf32> {ov.names = "x"}) -> (tensor<1x2xf32> {ov.names = "y"}) {
  %axes = ov.Constant #ov.inline<i64 [0, 1]> : tensor<2xi64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<1x1xi64>
  %limit = ov.Constant #ov.inline<i64 [4]> : tensor<1x1xi64>
  %short = ov.Constant #ov.inline<f32 [1.0, 2.0]> : tensor<1x2xf32>
  %long = ov.Constant #ov.inline<f32 [3.0, 4.0]> : tensor<1x2xf32>
  %last = ov.ReduceMax(%p, %axes) {keep_dims = true} : (tensor<?x?xi64>, tensor<2xi64>) -> tensor<1x1xi64>
  %length = ov.Add(%last, %one) : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
  %is_long = ov.Greater(%length, %limit) : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi1>
  %factors = ov.Select(%is_long, %long, %short) : (tensor<1x1xi1>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = ov.Multiply(%x, %factors) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}

// CHECK:      %[[REACH:\w+]]: tensor<?x1xi64> {ov.names = "npuw_longrope_4"})
// CHECK:      %[[FIRST:.*]] = ov.Gather(%[[REACH]], {{.*}}
// CHECK:      %[[FLAG:.*]] = ov.Reshape(%[[FIRST]], {{.*}} -> tensor<1x1xi64>
// CHECK-NEXT: %[[FROM:.*]] = ov.Constant #ov.inline<i64 [4]>
// CHECK-NEXT: %[[LAST:.*]] = ov.Multiply(%[[FLAG]], %[[FROM]])
// CHECK-NEXT: ov.Add(%[[LAST]], %one)
// CHECK-NOT:  ov.ReduceMax
