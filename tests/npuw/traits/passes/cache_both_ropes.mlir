// PASS: cache-both-ropes{rows=2}
// NUMBERS: position_ids=i64<2[1,2], npuw_longrope_4=i64<2[1,1]
// Factors of long inferences belong to three times the angle of short ones.

func.func @main(%p: tensor<?x?xi64> {ov.names = "position_ids"}, %reach: tensor<?x1xi64> {ov.names = "npuw_longrope_4"}) -> (tensor<?x?x1xf32> {ov.names = "y"}) {
  %axis = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<1x1xi64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<1x1xi64>
  %twice = ov.Multiply(%reach, %two) : (tensor<?x1xi64>, tensor<1x1xi64>) -> tensor<?x1xi64>
  %factor = ov.Add(%twice, %one) : (tensor<?x1xi64>, tensor<1x1xi64>) -> tensor<?x1xi64>
  %scaled = ov.Multiply(%p, %factor) : (tensor<?x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
  %numbers = ov.Convert(%scaled) {destination_type = "f32"} : (tensor<?x?xi64>) -> tensor<?x?xf32>
  %angles = ov.Unsqueeze(%numbers, %axis) : (tensor<?x?xf32>, tensor<1xi64>) -> tensor<?x?x1xf32>
  %y = ov.Sin(%angles) : (tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
  func.return %y : tensor<?x?x1xf32>
}

// CHECK:      %[[BEGIN:.*]] = ov.Multiply(%reach, {{.*}}
// CHECK-NEXT: %[[ROW:.*]] = ov.Add(%p, %[[BEGIN]])
// CHECK-NEXT: %[[TABLES:.*]] = ov.Constant #ov.inline<f32 [0.0, 0.841471, 0.0, 0.14112]> : tensor<4x1xf32>
// CHECK:      %[[Y:.*]] = ov.Gather(%[[TABLES]], %[[ROW]], {{.*}}
// CHECK-NEXT: func.return %[[Y]]
