// PASS: sort-ops
// NUMBERS: yes
// The mask comes before the data, and operands follow the order of their user.

func.func @main(%ids: tensor<1x2xi64> {ov.names = "ids"}, %mask: tensor<1x4xf32> {ov.names = "attention_mask"}) -> (tensor<1x2x4xf32> {ov.names = "y"}) {
  %table = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]> : tensor<4x4xf32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %x = ov.Gather(%table, %ids, %axis) {batch_dims = 0 : i64} : (tensor<4x4xf32>, tensor<1x2xi64>, tensor<i64>) -> tensor<1x2x4xf32>
  %second = ov.Exp(%x) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %first = ov.Negative(%x) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %seen = ov.Abs(%mask) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %sum = ov.Subtract(%first, %second) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %y = ov.Multiply(%sum, %seen) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x4xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// CHECK:      ov.Abs
// CHECK-NEXT: ov.Gather
// CHECK-NEXT: ov.Negative
// CHECK-NEXT: ov.Exp
// CHECK-NEXT: ov.Subtract
// CHECK-NEXT: ov.Multiply
