// PASS: cache-rope{rows=4}
// NUMBERS: position_ids=i64<4[1,3]

func.func @main(%p: tensor<?x?xi64> {ov.names = "position_ids"}) -> (tensor<?x?x2xf32> {ov.names = "y"}) {
  %axis = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %frequencies = ov.Constant #ov.inline<f32 [1.0, 0.5]> : tensor<2xf32>
  %numbers = ov.Convert(%p) {destination_type = "f32"} : (tensor<?x?xi64>) -> tensor<?x?xf32>
  %column = ov.Unsqueeze(%numbers, %axis) : (tensor<?x?xf32>, tensor<1xi64>) -> tensor<?x?x1xf32>
  %angles = ov.Multiply(%column, %frequencies) : (tensor<?x?x1xf32>, tensor<2xf32>) -> tensor<?x?x2xf32>
  %y = ov.Sin(%angles) : (tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
  func.return %y : tensor<?x?x2xf32>
}

// CHECK:      func.func @main(%[[P:.*]]: tensor<?x?xi64>
// CHECK-NEXT:   %[[TABLE:.*]] = ov.Constant #ov.inline<f32 [0.0, 0.0, 0.841471, 0.47942555, 0.9092974, 0.841471, 0.14112, 0.997495]> : tensor<4x2xf32>
// CHECK-NEXT:   %[[AXIS:.*]] = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
// CHECK-NEXT:   %[[Y:.*]] = ov.Gather(%[[TABLE]], %[[P]], %[[AXIS]])
// CHECK-NEXT:   func.return %[[Y]]
