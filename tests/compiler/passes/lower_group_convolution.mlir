// PASS: lower-group-convolution
// TOLERANCE: 1e-6
// One multiplication per filter element, summed; the second case has two spatial axes and padding.

func.func @main(%x: tensor<1x2x6xf32> {ov.names = "x"}, %w: tensor<2x1x1x3xf32> {ov.names = "w"}, %i: tensor<1x2x3x3xf32> {ov.names = "i"}, %f: tensor<2x1x1x1x2xf32> {ov.names = "f"}) -> (tensor<1x2x4xf32> {ov.names = "y"}, tensor<1x2x3x4xf32> {ov.names = "z"}) {
  %y = ov.GroupConvolution(%x, %w) {strides = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, dilations = array<i64: 1>, auto_pad = "explicit"} : (tensor<1x2x6xf32>, tensor<2x1x1x3xf32>) -> tensor<1x2x4xf32>
  %z = ov.GroupConvolution(%i, %f) {strides = array<i64: 1, 1>, pads_begin = array<i64: 0, 1>, pads_end = array<i64: 0, 1>, dilations = array<i64: 1, 1>, auto_pad = "explicit"} : (tensor<1x2x3x3xf32>, tensor<2x1x1x1x2xf32>) -> tensor<1x2x3x4xf32>
  func.return %y, %z : tensor<1x2x4xf32>, tensor<1x2x3x4xf32>
}

// CHECK:       %[[W:.*]] = ov.Reshape({{.*}} -> tensor<1x2x3xf32>
// CHECK:       ov.Slice(%[[W]], {{.*}} -> tensor<1x2x1xf32>
// CHECK:       ov.Slice(%x, {{.*}} -> tensor<1x2x4xf32>
// CHECK:       ov.Multiply({{.*}} -> tensor<1x2x4xf32>
// CHECK:       ov.Add({{.*}} -> tensor<1x2x4xf32>
// CHECK:       ov.Add({{.*}} -> tensor<1x2x4xf32>
// CHECK:       ov.Concat({{.*}} -> tensor<1x2x3x5xf32>
// CHECK:       ov.Add({{.*}} -> tensor<1x2x3x4xf32>
// CHECK-NOT:   ov.GroupConvolution
