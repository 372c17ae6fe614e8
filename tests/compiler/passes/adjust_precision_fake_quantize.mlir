// PASS: adjust-precision{precision="f16"}
// TOLERANCE: 0.01
// The bounds of a range keep their bits: rounding would change the steps.

func.func @main(%p: tensor<1x4xf32> {ov.names = "p"}) -> (tensor<1x4xf32> {ov.names = "y"}) {
  %x = ov.Negative(%p) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %low = ov.Constant #ov.inline<f32 [-1.2345678]> : tensor<f32>
  %high = ov.Constant #ov.inline<f32 [2.3456789]> : tensor<f32>
  %y = ov.FakeQuantize(%x, %low, %high, %low, %high) {levels = 256 : i64} : (tensor<1x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// CHECK: ov.FakeQuantize({{.*}}) {levels = 256 : i64} : (tensor<1x4xf16>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<1x4xf16>
