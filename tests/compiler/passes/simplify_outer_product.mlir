// PASS: simplify
// Frequencies times positions become an element-wise multiplication, which stays exact, not a matmul.

func.func @main(%p: tensor<1x1x8xf32> {ov.names = "p"}) -> (tensor<1x4x8xf32> {ov.names = "y"}) {
  %f = ov.Constant #ov.inline<f32 [1.0, 0.5, 0.25, 0.125]> : tensor<1x4x1xf32>
  %y = ov.MatMul(%f, %p) {transpose_a = false, transpose_b = false} : (tensor<1x4x1xf32>, tensor<1x1x8xf32>) -> tensor<1x4x8xf32>
  func.return %y : tensor<1x4x8xf32>
}

// CHECK-NOT: ov.MatMul
// CHECK:     ov.Multiply({{.*}}) : (tensor<1x4x1xf32>, tensor<1x1x8xf32>) -> tensor<1x4x8xf32>
