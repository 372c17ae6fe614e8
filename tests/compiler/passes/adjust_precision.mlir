// PASS: adjust-precision{precision="f16"}
// TOLERANCE: 0.01
// Angles of positions stay f32, activations become f16, and the result keeps its declared type.

func.func @main(%p: tensor<1x4xi64> {ov.names = "p"}, %x: tensor<1x4xf32> {ov.names = "x"}) -> (tensor<1x4xf32> {ov.names = "y"}) {
  %pos = ov.Convert(%p) {destination_type = "f32"} : (tensor<1x4xi64>) -> tensor<1x4xf32>
  %cos = ov.Cos(%pos) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %y = ov.Multiply(%x, %cos) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// CHECK:      func.func @main(%[[P:.*]]: tensor<1x4xi64> {{.*}}, %[[X:.*]]: tensor<1x4xf32> {{.*}}) -> (tensor<1x4xf32>
// CHECK-DAG:    %[[X16:.*]] = ov.Convert(%[[X]]) {destination_type = "f16"}
// CHECK-DAG:    %[[COS:.*]] = ov.Cos({{.*}}) : (tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK-DAG:    %[[COS16:.*]] = ov.Convert(%[[COS]]) {destination_type = "f16"}
// CHECK:        %[[Y16:.*]] = ov.Multiply(%[[X16]], %[[COS16]]) : (tensor<1x4xf16>, tensor<1x4xf16>) -> tensor<1x4xf16>
// CHECK-NEXT:   %[[Y:.*]] = ov.Convert(%[[Y16]]) {destination_type = "f32"}
// CHECK-NEXT:   func.return %[[Y]]
