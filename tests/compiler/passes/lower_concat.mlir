// PASS: lower-concat

func.func @main(%a: tensor<1x2xf32> {ov.names = "a"}, %b: tensor<1x3xf32> {ov.names = "b"}) -> (tensor<1x5xf32> {ov.names = "y"}) {
  %y = ov.Concat(%a, %b) {axis = -1 : i64} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>
  func.return %y : tensor<1x5xf32>
}

// CHECK: npu.concat(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>
