// PASS: decompose-group-norm
// TOLERANCE: 1e-5
// Each group of channels is a row; each channel has a scale and a bias.

func.func @main(%x: tensor<1x4x2x3xf32> {ov.names = "x"}, %s: tensor<4xf32> {ov.names = "s"}, %b: tensor<4xf32> {ov.names = "b"}) -> (tensor<1x4x2x3xf32> {ov.names = "y"}) {
  %y = ov.GroupNormalization(%x, %s, %b) {ov.name = "norm", num_groups = 2 : i64, epsilon = 1.000000e-02 : f64} : (tensor<1x4x2x3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x2x3xf32>
  func.return %y : tensor<1x4x2x3xf32>
}

// CHECK:      %[[ROWS:.*]] = ov.Reshape(%x, {{.*}} -> tensor<1x2x12xf32>
// CHECK:      %[[NORMAL:.*]] = ov.MVN(%[[ROWS]], {{.*}}
// CHECK:      %[[APART:.*]] = ov.Reshape(%[[NORMAL]], {{.*}} -> tensor<1x4x2x3xf32>
// CHECK:      %[[SCALE:.*]] = ov.Reshape(%s, {{.*}} -> tensor<1x4x1x1xf32>
// CHECK:      %[[BIAS:.*]] = ov.Reshape(%b, {{.*}} -> tensor<1x4x1x1xf32>
// CHECK:      %[[SCALED:.*]] = ov.Multiply(%[[APART]], %[[SCALE]])
// CHECK-NEXT: ov.Add(%[[SCALED]], %[[BIAS]]) {ov.name = "norm"}
