// PASS: fold-constants
// Ops on constants are computed; a conversion of a weight in a file is left to the hardware.

func.func @main(%x: tensor<2xi64> {ov.names = "x"}) -> (tensor<2xi64> {ov.names = "y"}) {
  %a = ov.Constant #ov.inline<i64 [1, 2]> : tensor<2xi64>
  %b = ov.Add(%a, %a) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %c = ov.Multiply(%b, %a) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %y = ov.Add(%x, %c) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  func.return %y : tensor<2xi64>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<2xi64>
// CHECK-NEXT:   %[[C:.*]] = ov.Constant #ov.inline<i64 [2, 8]> : tensor<2xi64>
// CHECK-NEXT:   %[[Y:.*]] = ov.Add(%[[X]], %[[C]])
// CHECK-NEXT:   func.return %[[Y]]
