// PASS: fuse-rms
// The mean of squares of another tensor is not a norm of x.

func.func @main(%x: tensor<1x8xf32> {ov.names = "x"}, %z: tensor<1x8xf32> {ov.names = "z"}) -> (tensor<1x8xf32> {ov.names = "y"}) {
  %one = ov.Constant #ov.inline<f32 [1.0]> : tensor<1x1xf32>
  %last = ov.Constant #ov.inline<i64 [-1]> : tensor<1xi64>
  %square = ov.Multiply(%z, %z) : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %mean = ov.ReduceMean(%square, %last) {keep_dims = true} : (tensor<1x8xf32>, tensor<1xi64>) -> tensor<1x1xf32>
  %shifted = ov.Add(%mean, %one) : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  %root = ov.Sqrt(%shifted) : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %inverse = ov.Divide(%one, %root) : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  %y = ov.Multiply(%x, %inverse) : (tensor<1x8xf32>, tensor<1x1xf32>) -> tensor<1x8xf32>
  func.return %y : tensor<1x8xf32>
}

// CHECK-NOT: ov.RMS
// CHECK:     ov.Divide
