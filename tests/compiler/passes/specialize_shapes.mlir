// PASS: specialize-shapes{shapes="x=2x3"}
// Shapes flow from the input; shape arithmetic becomes constants.
// NUMBERS: x=f32[2,3]

func.func @main(%x: tensor<?x?xf32> {ov.names = "x"}) -> (tensor<?x?xf32> {ov.names = "y"}) {
  %shape = ov.ShapeOf(%x) {output_type = "i64"} : (tensor<?x?xf32>) -> tensor<2xi64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %cols = ov.Gather(%shape, %one, %axis) {batch_dims = 0 : i64} : (tensor<2xi64>, tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %minus = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>
  %target = ov.Concat(%cols, %minus) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = ov.Reshape(%x, %target) {special_zero = false} : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<2x3xf32> {{.*}}) -> (tensor<3x2xf32>
// CHECK-NEXT:   %[[T:.*]] = ov.Constant #ov.inline<i64 [3, -1]> : tensor<2xi64>
// CHECK-NEXT:   %[[Y:.*]] = ov.Reshape(%[[X]], %[[T]]) {{.*}} -> tensor<3x2xf32>
// CHECK-NEXT:   func.return %[[Y]]
