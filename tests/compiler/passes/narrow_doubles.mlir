// PASS: narrow-doubles
// TOLERANCE: 1e-6
// No hardware has f64: ops and constants are computed in f32. Inputs and outputs keep their type,
// which is refused later.

func.func @main(%x: tensor<3xi64> {ov.names = "x"}, %d: tensor<3xf64> {ov.names = "d"}) -> (tensor<3xf32> {ov.names = "y"}, tensor<3xf64> {ov.names = "z"}) {
  %wide = ov.Convert(%x) {ov.name = "wide", destination_type = "f64"} : (tensor<3xi64>) -> tensor<3xf64>
  %step = ov.Constant #ov.inline<f64 [0.5]> : tensor<1xf64>
  %angle = ov.Multiply(%wide, %step) {ov.name = "angle"} : (tensor<3xf64>, tensor<1xf64>) -> tensor<3xf64>
  %sum = ov.Add(%angle, %d) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %y = ov.Convert(%sum) {destination_type = "f32"} : (tensor<3xf64>) -> tensor<3xf32>
  func.return %y, %sum : tensor<3xf32>, tensor<3xf64>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<3xi64> {{.*}}, %[[D:.*]]: tensor<3xf64>
// CHECK-NEXT: %[[OTHER:.*]] = ov.Convert(%[[D]]) {ov.name = "d", destination_type = "f32"}
// CHECK-NEXT: %[[WIDE:.*]] = ov.Convert(%[[X]]) {ov.name = "wide", destination_type = "f32"}
// CHECK-NEXT: %[[STEP:.*]] = ov.Constant #ov.inline<f32 [0.5]>
// CHECK-NEXT: %[[ANGLE:.*]] = ov.Multiply(%[[WIDE]], %[[STEP]]) {ov.name = "angle"}
// CHECK-NEXT: %[[SUM:.*]] = ov.Add(%[[ANGLE]], %[[OTHER]])
// CHECK:      %[[Z:.*]] = ov.Convert(%[[SUM]]) {ov.name = "z", destination_type = "f64"}
// CHECK-NEXT: func.return %{{.*}}, %[[Z]]
