// PASS: widen-nibbles
// The device widens inputs: each byte holds two elements, the first one in its lower half.

func.func @main(%w: tensor<2x3x4xi4> {ov.names = "w"}, %z: tensor<3x1xui4> {ov.names = "z"}, %s: tensor<3x2x1xf32> {ov.names = "s"}) -> (tensor<3x2x4xf32> {ov.names = "y"}, tensor<3x1xf16> {ov.names = "u"}) {
  %order = ov.Constant #ov.inline<i64 [1, 0, 2]> : tensor<3xi64>
  %turned = ov.Transpose(%w, %order) : (tensor<2x3x4xi4>, tensor<3xi64>) -> tensor<3x2x4xi4>
  %y = ov.Dequantize(%turned, %s) {destination_type = "f32"} : (tensor<3x2x4xi4>, tensor<3x2x1xf32>) -> tensor<3x2x4xf32>
  %u = ov.Convert(%z) {destination_type = "f16"} : (tensor<3x1xui4>) -> tensor<3x1xf16>
  func.return %y, %u : tensor<3x2x4xf32>, tensor<3x1xf16>
}

// CHECK:      %[[PAIRS:.*]] = npu.bytes(%{{.*}}) : (tensor<2x3x4xi4>) -> tensor<2x3x2xui8>
// CHECK:      ov.Concat(%{{.*}}, %{{.*}}) {axis = 3 : i64} : (tensor<2x3x2x1xui8>, tensor<2x3x2x1xui8>) -> tensor<2x3x2x2xui8>
// CHECK:      ov.Reshape(%{{.*}}) {special_zero = false} : (tensor<24xui8>, tensor<3xi64>) -> tensor<2x3x4xui8>
// CHECK:      %[[WIDE:.*]] = ov.Convert(%{{.*}}) {destination_type = "i8"} : (tensor<2x3x4xf16>) -> tensor<2x3x4xi8>
// CHECK-NEXT: %[[TURNED:.*]] = ov.Transpose(%[[WIDE]], %{{.*}}) : (tensor<2x3x4xi8>, tensor<3xi64>) -> tensor<3x2x4xi8>
// CHECK-NEXT: ov.Dequantize(%[[TURNED]]
// CHECK:      npu.bytes(%{{.*}}) : (tensor<3x1xui4>) -> tensor<2xui8>
// CHECK:      ov.Slice(%{{.*}}) : (tensor<4xui8>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xui8>
