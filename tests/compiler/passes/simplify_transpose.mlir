// PASS: simplify
// Two transposes become one, or none.

func.func @main(%x: tensor<2x3x4xf32> {ov.names = "x"}) -> (tensor<2x3x4xf32> {ov.names = "same"}, tensor<4x2x3xf32> {ov.names = "turned"}) {
  %there = ov.Constant #ov.inline<i64 [2, 0, 1]> : tensor<3xi64>
  %back = ov.Constant #ov.inline<i64 [1, 2, 0]> : tensor<3xi64>
  %a = ov.Transpose(%x, %there) : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>
  %same = ov.Transpose(%a, %back) : (tensor<4x2x3xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
  %b = ov.Transpose(%x, %back) : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<3x4x2xf32>
  %turned = ov.Transpose(%b, %back) : (tensor<3x4x2xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>
  func.return %same, %turned : tensor<2x3x4xf32>, tensor<4x2x3xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<2x3x4xf32> {ov.names = "x"}
// CHECK-NEXT:   %[[ORDER:.*]] = ov.Constant #ov.inline<i64 [2, 0, 1]> : tensor<3xi64>
// CHECK-NEXT:   %[[TURNED:.*]] = ov.Transpose(%[[X]], %[[ORDER]])
// CHECK-NEXT:   func.return %[[X]], %[[TURNED]]
