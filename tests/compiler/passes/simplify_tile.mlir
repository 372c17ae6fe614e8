// PASS: simplify
// TOLERANCE: 0
// Repetitions become broadcasts: along a dimension of 1 itself, or along a new one before a longer dimension.

func.func @main(%x: tensor<2x1x3xf32> {ov.names = "x"}) -> (tensor<2x4x3xf32> {ov.names = "a"}, tensor<1x6x1x6xf32> {ov.names = "b"}, tensor<1x2x1x3xf32> {ov.names = "c"}) {
  %four = ov.Constant #ov.inline<i64 [1, 4, 1]> : tensor<3xi64>
  %both = ov.Constant #ov.inline<i64 [1, 3, 1, 2]> : tensor<4xi64>
  %once = ov.Constant #ov.inline<i64 [1, 1, 1, 1]> : tensor<4xi64>
  %a = ov.Tile(%x, %four) : (tensor<2x1x3xf32>, tensor<3xi64>) -> tensor<2x4x3xf32>
  %b = ov.Tile(%x, %both) : (tensor<2x1x3xf32>, tensor<4xi64>) -> tensor<1x6x1x6xf32>
  %c = ov.Tile(%x, %once) : (tensor<2x1x3xf32>, tensor<4xi64>) -> tensor<1x2x1x3xf32>
  func.return %a, %b, %c : tensor<2x4x3xf32>, tensor<1x6x1x6xf32>, tensor<1x2x1x3xf32>
}

// CHECK:       ov.Broadcast(%{{.*}} -> tensor<2x4x3xf32>
// CHECK:       ov.Broadcast(%{{.*}} -> tensor<1x3x2x1x2x3xf32>
// CHECK:       ov.Reshape(%{{.*}} -> tensor<1x6x1x6xf32>
// CHECK:       ov.Reshape(%{{.*}} -> tensor<1x2x1x3xf32>
// CHECK-NOT:   ov.Tile
