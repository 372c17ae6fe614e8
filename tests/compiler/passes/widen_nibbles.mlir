// PASS: widen-nibbles

func.func @main() -> (tensor<2x4xf32> {ov.names = "y"}) {
  %stored = ov.Constant #ov.inline<i4 [1, -2, 3, -4, 5, -6, 7, -8]> {ov.name = "w"} : tensor<2x4xi4>
  %zero = ov.Constant #ov.inline<u4 [1, 2]> : tensor<2x1xui4>
  %scale = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<2x1xf32>
  %y = ov.Dequantize(%stored, %scale, %zero) {destination_type = "f32"} : (tensor<2x4xi4>, tensor<2x1xf32>, tensor<2x1xui4>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// CHECK-NOT: i4
// CHECK:     %[[W:.*]] = ov.Constant #ov.inline<i8 [1, -2, 3, -4, 5, -6, 7, -8]> {ov.name = "w"} : tensor<2x4xi8>
// CHECK:     %[[ZERO:.*]] = ov.Constant #ov.inline<u8 [1, 2]> : tensor<2x1xui8>
// CHECK:     ov.Dequantize(%[[W]], %{{.*}}, %[[ZERO]])
