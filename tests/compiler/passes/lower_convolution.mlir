// PASS: lower-convolution
// TOLERANCE: 1e-5
// The padded inputs of each filter element form a matrix, which a matmul multiplies with the filters. A
// filter of one element reads all positions; the second case has two spatial axes.

func.func @main(%x: tensor<1x2x6xf32> {ov.names = "x"}, %w: tensor<4x2x3xf32> {ov.names = "w"}, %i: tensor<2x3x4x5xf32> {ov.names = "i"}, %f: tensor<2x3x2x2xf32> {ov.names = "f"}, %o: tensor<5x2x1xf32> {ov.names = "o"}) -> (tensor<1x4x3xf32> {ov.names = "y"}, tensor<2x2x4x2xf32> {ov.names = "z"}, tensor<1x5x6xf32> {ov.names = "one"}) {
  %y = ov.Convolution(%x, %w) {strides = array<i64: 2>, pads_begin = array<i64: 1>, pads_end = array<i64: 1>, dilations = array<i64: 1>, auto_pad = "explicit"} : (tensor<1x2x6xf32>, tensor<4x2x3xf32>) -> tensor<1x4x3xf32>
  %z = ov.Convolution(%i, %f) {strides = array<i64: 1, 2>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 2, 0>, dilations = array<i64: 2, 2>, auto_pad = "explicit"} : (tensor<2x3x4x5xf32>, tensor<2x3x2x2xf32>) -> tensor<2x2x4x2xf32>
  %one = ov.Convolution(%x, %o) {strides = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, dilations = array<i64: 1>, auto_pad = "valid"} : (tensor<1x2x6xf32>, tensor<5x2x1xf32>) -> tensor<1x5x6xf32>
  func.return %y, %z, %one : tensor<1x4x3xf32>, tensor<2x2x4x2xf32>, tensor<1x5x6xf32>
}

// CHECK:       %[[PADDED:.*]] = ov.Concat(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 2 : i64} {{.*}} -> tensor<1x2x8xf32>
// CHECK:       %[[A:.*]] = ov.Slice(%[[PADDED]], {{.*}} -> tensor<1x2x3xf32>
// CHECK:       %[[B:.*]] = ov.Slice(%[[PADDED]], {{.*}} -> tensor<1x2x3xf32>
// CHECK:       %[[C:.*]] = ov.Slice(%[[PADDED]], {{.*}} -> tensor<1x2x3xf32>
// CHECK:       ov.Concat({{.*}} -> tensor<1x2x3x3xf32>
// CHECK:       ov.MatMul({{.*}}tensor<1x6x3xf32>, tensor<4x6xf32>) -> tensor<1x3x4xf32>
// CHECK:       ov.Transpose({{.*}} -> tensor<1x4x3xf32>
// CHECK:       ov.MatMul({{.*}}tensor<2x12x8xf32>, tensor<2x12xf32>) -> tensor<2x8x2xf32>
// CHECK:       ov.Reshape({{.*}} -> tensor<2x2x4x2xf32>
// CHECK:       ov.MatMul({{.*}}tensor<1x2x6xf32>, tensor<5x2xf32>) -> tensor<1x6x5xf32>
// CHECK-NOT:   ov.Convolution
