// PASS: shape-long-mark{slots=2}
// NUMBERS: no
// VERIFY: no

func.func @main(%reach: tensor<?x1xi64> {ov.names = "npuw_longrope_4"}) -> (tensor<?x1xi64> {ov.names = "y"}) {
  %y = ov.Abs(%reach) : (tensor<?x1xi64>) -> tensor<?x1xi64>
  func.return %y : tensor<?x1xi64>
}

// CHECK: tensor<2x1xi64> {ov.names = "npuw_longrope_4"}
