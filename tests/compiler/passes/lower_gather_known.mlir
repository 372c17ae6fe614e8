// PASS: lower-gather
// Constant row indices, as those of positions, are stored as i64 for DMA.

func.func @main(%x: tensor<1x2x4xf32> {ov.names = "x"}) -> (tensor<1x2x4xf32> {ov.names = "y"}) {
  %table = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : tensor<3x4xf32>
  %rows = ov.Constant #ov.inline<i32 [2, 0]> : tensor<1x2xi32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %found = ov.Gather(%table, %rows, %axis) {batch_dims = 0 : i64} : (tensor<3x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<1x2x4xf32>
  %y = ov.Add(%x, %found) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// CHECK:        %[[ROWS:.*]] = ov.Constant #ov.inline<i64 [2, 0]> : tensor<1x2xi64>
// CHECK:        npu.gather(%{{.*}}, %[[ROWS]]) : (tensor<3x4xf32>, tensor<1x2xi64>) -> tensor<1x2x4xf32>
