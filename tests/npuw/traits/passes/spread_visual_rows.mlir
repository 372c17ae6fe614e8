// PASS: spread-visual-rows{tokens=3}
// NUMBERS: no
// VERIFY: no
// Form of optimum-intel 2.0: tokens of the image are gathered, increased, and scattered.

func.func @main(%h: tensor<?x?x4xf32> {ov.names = "inputs_embeds"}, %marks: tensor<?x?xi1> {ov.names = "visual_pos_masks"}, %features: tensor<1x?x4xf32> {ov.names = "deepstack_visual_embeds"}) -> (tensor<?x?x4xf32> {ov.names = "y"}) {
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %order = ov.Constant #ov.inline<i64 [1, 0]> : tensor<2xi64>
  %found = ov.NonZero(%marks) {output_type = "i64"} : (tensor<?x?xi1>) -> tensor<2x?xi64>
  %at = ov.Transpose(%found, %order) : (tensor<2x?xi64>, tensor<2xi64>) -> tensor<?x2xi64>
  %level = ov.Gather(%features, %zero, %zero) {batch_dims = 0 : i64} : (tensor<1x?x4xf32>, tensor<i64>, tensor<i64>) -> tensor<?x4xf32>
  %picked = ov.GatherND(%h, %at) {batch_dims = 0 : i64} : (tensor<?x?x4xf32>, tensor<?x2xi64>) -> tensor<?x4xf32>
  %sum = ov.Add(%picked, %level) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = ov.ScatterNDUpdate(%h, %at, %sum) {reduction = "none"} : (tensor<?x?x4xf32>, tensor<?x2xi64>, tensor<?x4xf32>) -> tensor<?x?x4xf32>
  func.return %y : tensor<?x?x4xf32>
}

// CHECK:      func.func @main(%[[H:.*]]: tensor<?x?x4xf32> {ov.names = "inputs_embeds"}, %[[F:.*]]: tensor<1x1x3x4xf32> {ov.names = "deepstack_visual_embeds"})
// CHECK:      %[[LEVELS:.*]] = ov.Reshape(%[[F]], {{.*}} -> tensor<1x3x4xf32>
// CHECK:      %[[ROWS:.*]] = ov.Gather(%[[LEVELS]], {{.*}}
// CHECK-NEXT: %[[Y:.*]] = ov.Add(%[[H]], %[[ROWS]])
// CHECK-NEXT: func.return %[[Y]]
