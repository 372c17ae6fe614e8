// PASS: simplify
// Elements before a cut move behind the rest; shifts by zero, or by the full length, are removed.

func.func @main(%x: tensor<2x4xf32> {ov.names = "x"}) -> (tensor<2x4xf32> {ov.names = "a"}, tensor<2x4xf32> {ov.names = "b"}) {
  %back = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>
  %axis = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>
  %a = ov.Roll(%x, %back, %axis) : (tensor<2x4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x4xf32>
  %round = ov.Constant #ov.inline<i64 [2, 8]> : tensor<2xi64>
  %both = ov.Constant #ov.inline<i64 [0, 1]> : tensor<2xi64>
  %b = ov.Roll(%a, %round, %both) : (tensor<2x4xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x4xf32>
  func.return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}

// CHECK:      %[[TAIL:.*]] = ov.Slice(%x, {{.*}} -> tensor<2x3xf32>
// CHECK:      %[[HEAD:.*]] = ov.Slice(%x, {{.*}} -> tensor<2x1xf32>
// CHECK:      %[[A:.*]] = ov.Concat(%[[TAIL]], %[[HEAD]]) {axis = 1 : i64}
// CHECK-NOT:  ov.Roll
// CHECK:      func.return %[[A]], %[[A]]
