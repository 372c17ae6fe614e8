// PASS: record-vocabulary
// NUMBERS: no

func.func @main(%ids: tensor<1x2xi64> {ov.names = "input_ids"}) -> (tensor<1x2x1xf32> {ov.names = "y"}) {
  %table = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0]> : tensor<3x1xf32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %y = ov.Gather(%table, %ids, %axis) {batch_dims = 0 : i64} : (tensor<3x1xf32>, tensor<1x2xi64>, tensor<i64>) -> tensor<1x2x1xf32>
  func.return %y : tensor<1x2x1xf32>
}

// CHECK: tensor<1xi64> {ov.names = "npuw_vocabulary_3"}) ->
