// PASS: form-kernels,fuse-kernels
// The sum has another user, so it becomes a second result. The next kernel has another domain.

func.func @main(%x: tensor<2x4xf32> {ov.names = "x"}, %h: tensor<2x4xf32> {ov.names = "h"}, %wide: tensor<3x2x4xf32> {ov.names = "wide"}) -> (tensor<2x4xf32> {ov.names = "sum"}, tensor<2x4xf32> {ov.names = "norm"}, tensor<3x2x4xf32> {ov.names = "z"}) {
  %sum = ov.Add(%x, %h) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %norm = ov.RMS(%sum) {epsilon = 0.5 : f64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = ov.Add(%wide, %norm) : (tensor<3x2x4xf32>, tensor<2x4xf32>) -> tensor<3x2x4xf32>
  func.return %sum, %norm, %z : tensor<2x4xf32>, tensor<2x4xf32>, tensor<3x2x4xf32>
}

// CHECK:      %[[SUM:.*]], %[[NORM:.*]] = npu.kernel(%{{.*}}, %{{.*}}) {
// CHECK:        %[[A:.*]] = ov.Add
// CHECK-NEXT:   %[[B:.*]] = ov.RMS(%[[A]])
// CHECK-NEXT:   npu.yield %[[A]], %[[B]]
// CHECK:      %[[Z:.*]] = npu.kernel(%{{.*}}, %[[NORM]]) {
// CHECK:      func.return %[[SUM]], %[[NORM]], %[[Z]]
