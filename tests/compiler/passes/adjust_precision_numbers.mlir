// PASS: adjust-precision{precision="f16"}
// TOLERANCE: 0.01
// A scalar constant is rounded at compile time: no conversion is left for run time.

func.func @main(%x: tensor<1x4xf32> {ov.names = "x"}) -> (tensor<1x4xf32> {ov.names = "y"}) {
  %two = ov.Constant #ov.inline<f32 [2.0]> {ov.name = "two"} : tensor<f32>
  %y = ov.Multiply(%x, %two) : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<1x4xf32> {{.*}}) -> (tensor<1x4xf32>
// CHECK-NEXT:   %[[X16:.*]] = ov.Convert(%[[X]])
// CHECK-NEXT:   %[[TWO:.*]] = ov.Constant #ov.inline<f16 [2.0]> {ov.name = "two"} : tensor<f16>
// CHECK-NEXT:   ov.Multiply(%[[X16]], %[[TWO]])
