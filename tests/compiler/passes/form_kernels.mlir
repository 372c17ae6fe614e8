// PASS: form-kernels
// Scalars become immediates, tensors stay operands; a reduction over rows is not a kernel, unlike one over columns.

func.func @main(%x: tensor<2x4xf32> {ov.names = "x"}) -> (tensor<2x4xf32> {ov.names = "y"}, tensor<1x4xf32> {ov.names = "z"}) {
  %two = ov.Constant #ov.inline<f32 [2.0]> : tensor<f32>
  %rows = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %y = ov.Multiply(%x, %two) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %z = ov.ReduceSum(%x, %rows) {keep_dims = true} : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  func.return %y, %z : tensor<2x4xf32>, tensor<1x4xf32>
}

// CHECK:      %{{.*}} = npu.kernel(%{{.*}}) {
// CHECK-NEXT: ^{{.*}}(%[[A:.*]]: tensor<2x4xf32>):
// CHECK-NEXT:   %[[TWO:.*]] = ov.Constant #ov.inline<f32 [2.0]>
// CHECK-NEXT:   %[[R:.*]] = ov.Multiply(%[[A]], %[[TWO]])
// CHECK-NEXT:   npu.yield %[[R]]
// CHECK:      ov.ReduceSum
