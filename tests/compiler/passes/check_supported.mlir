// PASS: check-supported
// A supported graph passes unchanged; test_unsupported.py has the unsupported ones.

func.func @main(%x: tensor<1x4xf32> {ov.names = "x"}) -> (tensor<1x4xf32> {ov.names = "y"}) {
  %y = ov.Exp(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<1x4xf32>
// CHECK-NEXT:   %[[Y:.*]] = ov.Exp(%[[X]])
// CHECK-NEXT:   func.return %[[Y]]
