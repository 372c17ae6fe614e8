// PASS: adjust-precision
// TOLERANCE: 0.01
// An input of f16 is rounded already: what it feeds stays in f16. Integers stay exact.

func.func @main(%x: tensor<2x3xf16> {ov.names = "x"}, %p: tensor<2x3xi64> {ov.names = "p"})
    -> (tensor<2x3xf16> {ov.names = "y"}, tensor<2x3xf32> {ov.names = "z"}) {
  %wide = ov.Convert(%x) {destination_type = "f32"} : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %sin = ov.Sin(%wide) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = ov.Convert(%sin) {destination_type = "f16"} : (tensor<2x3xf32>) -> tensor<2x3xf16>
  %place = ov.Convert(%p) {destination_type = "f32"} : (tensor<2x3xi64>) -> tensor<2x3xf32>
  %z = ov.Sin(%place) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y, %z : tensor<2x3xf16>, tensor<2x3xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<2x3xf16> {{.*}}, %[[P:.*]]: tensor<2x3xi64>
// CHECK-NEXT: %[[Y:.*]] = ov.Sin(%[[X]]) : (tensor<2x3xf16>) -> tensor<2x3xf16>
// CHECK-NEXT: %[[PLACE:.*]] = ov.Convert(%[[P]]) {destination_type = "f32"}
// CHECK-NEXT: %[[Z:.*]] = ov.Sin(%[[PLACE]]) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: func.return %[[Y]], %[[Z]]
