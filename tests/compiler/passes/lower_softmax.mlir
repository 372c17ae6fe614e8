// PASS: lower-softmax
// The axis changes places with the last dimension; a softmax over the last one stays.

func.func @main(%x: tensor<1x3x2x4xf32> {ov.names = "x"}) -> (tensor<1x3x2x4xf32> {ov.names = "a"}, tensor<1x3x2x4xf32> {ov.names = "b"}, tensor<1x3x2x4xf32> {ov.names = "c"}) {
  %a = ov.Softmax(%x) {axis = 1 : i64} : (tensor<1x3x2x4xf32>) -> tensor<1x3x2x4xf32>
  %b = ov.LogSoftmax(%x) {axis = -2 : i64} : (tensor<1x3x2x4xf32>) -> tensor<1x3x2x4xf32>
  %c = ov.Softmax(%x) {axis = 3 : i64} : (tensor<1x3x2x4xf32>) -> tensor<1x3x2x4xf32>
  func.return %a, %b, %c : tensor<1x3x2x4xf32>, tensor<1x3x2x4xf32>, tensor<1x3x2x4xf32>
}

// CHECK:      func.func @main(%[[X:[^:]*]]:
// CHECK:      ov.Constant #ov.inline<i64 [0, 3, 2, 1]>
// CHECK-NEXT: %[[T:.*]] = ov.Transpose(%[[X]], {{.*}} -> tensor<1x4x2x3xf32>
// CHECK-NEXT: %[[S:.*]] = ov.Softmax(%[[T]]) {axis = 3 : i64}
// CHECK:      ov.Transpose(%[[S]], {{.*}} -> tensor<1x3x2x4xf32>
// CHECK:      ov.Constant #ov.inline<i64 [0, 1, 3, 2]>
// CHECK-NEXT: ov.Transpose(%[[X]], {{.*}} -> tensor<1x3x4x2xf32>
// CHECK-NEXT: ov.LogSoftmax({{.*}}) {axis = 3 : i64}
// CHECK:      ov.Softmax(%[[X]]) {axis = 3 : i64}
