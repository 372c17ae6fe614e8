// PASS: fuse-rope

func.func @main(%x: tensor<1x2x3x8xf32> {ov.names = "x"}, %cos: tensor<1x1x3x8xf32> {ov.names = "cos"}, %sin: tensor<1x1x3x8xf32> {ov.names = "sin"}) -> (tensor<1x2x3x8xf32> {ov.names = "y"}) {
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %half = ov.Constant #ov.inline<i64 [4]> : tensor<1xi64>
  %end = ov.Constant #ov.inline<i64 [9223372036854775807]> : tensor<1xi64>
  %step = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %axis = ov.Constant #ov.inline<i64 [3]> : tensor<1xi64>
  %minus = ov.Constant #ov.inline<f32 [-1.0]> : tensor<f32>
  %second = ov.Slice(%x, %half, %end, %step, %axis) : (tensor<1x2x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x3x4xf32>
  %first = ov.Slice(%x, %zero, %half, %step, %axis) : (tensor<1x2x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x3x4xf32>
  %negated = ov.Multiply(%second, %minus) : (tensor<1x2x3x4xf32>, tensor<f32>) -> tensor<1x2x3x4xf32>
  %turned = ov.Concat(%negated, %first) {axis = -1 : i64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x8xf32>
  %a = ov.Multiply(%x, %cos) : (tensor<1x2x3x8xf32>, tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32>
  %b = ov.Multiply(%turned, %sin) : (tensor<1x2x3x8xf32>, tensor<1x1x3x8xf32>) -> tensor<1x2x3x8xf32>
  %y = ov.Add(%a, %b) : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  func.return %y : tensor<1x2x3x8xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: {{.*}}, %[[COS:.*]]: {{.*}}, %[[SIN:.*]]: {{.*}}) ->
// CHECK-NEXT:   %[[Y:.*]] = ov.RoPE(%[[X]], %[[COS]], %[[SIN]])
// CHECK-NEXT:   func.return %[[Y]]
