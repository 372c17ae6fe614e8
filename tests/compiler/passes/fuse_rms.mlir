// PASS: fuse-rms

func.func @main(%x: tensor<1x3x8xf32> {ov.names = "x"}) -> (tensor<1x3x8xf32> {ov.names = "y"}) {
  %two = ov.Constant #ov.inline<f32 [2.0]> : tensor<1x1x1xf32>
  %one = ov.Constant #ov.inline<f32 [1.0]> : tensor<1x1x1xf32>
  %eps = ov.Constant #ov.inline<f32 [0.5]> : tensor<1x1x1xf32>
  %last = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>
  %gamma = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %square = ov.Power(%x, %two) : (tensor<1x3x8xf32>, tensor<1x1x1xf32>) -> tensor<1x3x8xf32>
  %mean = ov.ReduceMean(%square, %last) {keep_dims = true} : (tensor<1x3x8xf32>, tensor<1xi64>) -> tensor<1x3x1xf32>
  %shifted = ov.Add(%mean, %eps) : (tensor<1x3x1xf32>, tensor<1x1x1xf32>) -> tensor<1x3x1xf32>
  %root = ov.Sqrt(%shifted) : (tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
  %inverse = ov.Divide(%one, %root) : (tensor<1x1x1xf32>, tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
  %normal = ov.Multiply(%x, %inverse) : (tensor<1x3x8xf32>, tensor<1x3x1xf32>) -> tensor<1x3x8xf32>
  %y = ov.Multiply(%gamma, %normal) {ov.name = "input_layernorm"} : (tensor<8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  func.return %y : tensor<1x3x8xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<1x3x8xf32>
// CHECK-NEXT:   %[[GAMMA:.*]] = ov.Constant {{.*}} : tensor<8xf32>
// CHECK-NEXT:   %[[Y:.*]] = ov.RMS(%[[X]], %[[GAMMA]]) {ov.name = "input_layernorm", epsilon = 5.000000e-01 : f64}
// CHECK-NEXT:   func.return %[[Y]]
