// PASS: simplify
// NUMBERS: p=i64<5[1,3], x=f32[2,2,4]
// One index for all columns: rows of a table, as GPT-J looks up sines. Tuples that enumerate the
// outer dimensions: only a reshape, as GLM-4 repeats each angle. A separate index for each element
// stays, and so do tuples that are not constant.

func.func @main(%p: tensor<1x3xi64> {ov.names = "p"}, %x: tensor<2x2x4xf32> {ov.names = "x"}) -> (tensor<1x3x2xf32> {ov.names = "a"}, tensor<4x4xf32> {ov.names = "b"}, tensor<5x1xf32> {ov.names = "c"}, tensor<1x4xf32> {ov.names = "d"}) {
  %table = ov.Constant #ov.inline<f32 [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]> : tensor<5x2xf32>
  %once = ov.Constant #ov.inline<i64 [1, 1, 1]> : tensor<3xi64>
  %tables = ov.Tile(%table, %once) : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<1x5x2xf32>
  %last = ov.Constant #ov.inline<i64 [-1]> : tensor<i64>
  %column = ov.Unsqueeze(%p, %last) : (tensor<1x3xi64>, tensor<i64>) -> tensor<1x3x1xi64>
  %twice = ov.Constant #ov.inline<i64 [1, 1, 2]> : tensor<3xi64>
  %all = ov.Tile(%column, %twice) : (tensor<1x3x1xi64>, tensor<3xi64>) -> tensor<1x3x2xi64>
  %narrow = ov.Convert(%all) {destination_type = "i32"} : (tensor<1x3x2xi64>) -> tensor<1x3x2xi32>
  %a = ov.GatherElements(%tables, %narrow) {axis = 1 : i64} : (tensor<1x5x2xf32>, tensor<1x3x2xi32>) -> tensor<1x3x2xf32>
  %tuples = ov.Constant #ov.inline<i64 [0, 0, 0, 1, 1, 0, 1, -1]> : tensor<4x2xi64>
  %b = ov.GatherND(%x, %tuples) {batch_dims = 0 : i64} : (tensor<2x2x4xf32>, tensor<4x2xi64>) -> tensor<4x4xf32>
  %own = ov.Constant #ov.inline<i64 [1, 0, 1, 0, 1]> : tensor<5x1xi64>
  %c = ov.GatherElements(%table, %own) {axis = 1 : i64} : (tensor<5x2xf32>, tensor<5x1xi64>) -> tensor<5x1xf32>
  %zeros = ov.Constant #ov.inline<i64 [0, 0]> : tensor<1x2xi64>
  %known = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %first = ov.Convert(%x) {destination_type = "i64"} : (tensor<2x2x4xf32>) -> tensor<2x2x4xi64>
  %none = ov.Multiply(%first, %known) : (tensor<2x2x4xi64>, tensor<i64>) -> tensor<2x2x4xi64>
  %pattern = ov.Constant #ov.inline<i64 [8, 2]> : tensor<2xi64>
  %unknown = ov.Reshape(%none, %pattern) {special_zero = false} : (tensor<2x2x4xi64>, tensor<2xi64>) -> tensor<8x2xi64>
  %many = ov.GatherND(%x, %unknown) {batch_dims = 0 : i64} : (tensor<2x2x4xf32>, tensor<8x2xi64>) -> tensor<8x4xf32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %d = ov.ReduceMax(%many, %axis) {keep_dims = true} : (tensor<8x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  func.return %a, %b, %c, %d : tensor<1x3x2xf32>, tensor<4x4xf32>, tensor<5x1xf32>, tensor<1x4xf32>
}

// CHECK-NOT:  ov.Tile
// CHECK:      ov.Gather(%{{.*}} : (tensor<5x2xf32>, tensor<3xi64>, tensor<i64>) -> tensor<3x2xf32>
// CHECK:      ov.Reshape(%{{.*}} -> tensor<4x4xf32>
// CHECK:      ov.GatherElements
// CHECK:      ov.GatherND
// CHECK-NOT:  ov.Gather
