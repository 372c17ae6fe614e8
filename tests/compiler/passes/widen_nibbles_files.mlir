// PASS: widen-nibbles
// NUMBERS: no
// A constant in a file stays there: all programs of a model share the widened values.

func.func @main() -> (tensor<2x4xf32> {ov.names = "y"}) {
  %stored = ov.Constant #ov.file<"model.bin", 64, 4, u4> {ov.name = "w"} : tensor<2x4xui4>
  %zero = ov.Constant #ov.file<"model.bin", 128, 1, u4> : tensor<2x1xui4>
  %scale = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<2x1xf32>
  %y = ov.Dequantize(%stored, %scale, %zero) {destination_type = "f32"} : (tensor<2x4xui4>, tensor<2x1xf32>, tensor<2x1xui4>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// CHECK:     %[[W:.*]] = ov.Constant #ov.file<"model.bin", 64, 4, u4> {ov.name = "w"} : tensor<2x4xui8>
// CHECK:     %[[ZERO:.*]] = ov.Constant #ov.file<"model.bin", 128, 1, u4> : tensor<2x1xui8>
// CHECK:     ov.Dequantize(%[[W]], %{{.*}}, %[[ZERO]])
