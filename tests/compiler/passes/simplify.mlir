// PASS: simplify
// NUMBERS: beam=i32<1[1]
// An empty cache, a broadcast to the same shape, a complete slice, a complete gather: all are removed.

func.func @main(%new: tensor<1x4x7x32xf32> {ov.names = "new"}, %beam: tensor<1xi32> {ov.names = "beam"}) -> (tensor<1x4x7x32xf32> {ov.names = "y"}) {
  %empty = ov.Constant #ov.inline<f32 []> : tensor<1x4x0x32xf32>
  %a = ov.Concat(%empty, %new) {axis = -2 : i64} : (tensor<1x4x0x32xf32>, tensor<1x4x7x32xf32>) -> tensor<1x4x7x32xf32>
  %shape = ov.Constant #ov.inline<i64 [1, 4, 7, 32]> : tensor<4xi64>
  %b = ov.Broadcast(%a, %shape) {mode = "numpy"} : (tensor<1x4x7x32xf32>, tensor<4xi64>) -> tensor<1x4x7x32xf32>
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %seven = ov.Constant #ov.inline<i64 [7]> : tensor<1xi64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %c = ov.Slice(%b, %zero, %seven, %one, %two) : (tensor<1x4x7x32xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x4x7x32xf32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %d = ov.Gather(%c, %beam, %axis) {batch_dims = 0 : i64} : (tensor<1x4x7x32xf32>, tensor<1xi32>, tensor<i64>) -> tensor<1x4x7x32xf32>
  func.return %d : tensor<1x4x7x32xf32>
}

// CHECK:      func.func @main(%[[NEW:.*]]: tensor<1x4x7x32xf32> {ov.names = "new"}
// CHECK-NEXT:   func.return %[[NEW]]
