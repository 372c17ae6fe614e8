// PASS: adjust-precision{precision="f16"}
// TOLERANCE: 0.002
// NUMBERS: p=i64<4000[1,1,4]
// Compressed frequencies stay f32, as angles do: rounding one causes errors of radians at late positions.
// The same weights, multiplied with activations, are narrowed.

func.func @main(%p: tensor<1x1x4xi64> {ov.names = "p"}, %x: tensor<1x2x4xf32> {ov.names = "x"}) -> (tensor<1x2x4xf32> {ov.names = "cos"}, tensor<1x2x4xf32> {ov.names = "y"}) {
  %stored = ov.Constant #ov.inline<u8 [255, 77]> : tensor<1x2xui8>
  %scale = ov.Constant #ov.inline<f16 [0.003926]> : tensor<1x1xf16>
  %pattern = ov.Constant #ov.inline<i64 [1, 2, 1]> : tensor<3xi64>
  %wide = ov.Dequantize(%stored, %scale) {destination_type = "f32"} : (tensor<1x2xui8>, tensor<1x1xf16>) -> tensor<1x2xf32>
  %frequencies = ov.Reshape(%wide, %pattern) {special_zero = false} : (tensor<1x2xf32>, tensor<3xi64>) -> tensor<1x2x1xf32>
  %positions = ov.Convert(%p) {destination_type = "f32"} : (tensor<1x1x4xi64>) -> tensor<1x1x4xf32>
  %angles = ov.MatMul(%frequencies, %positions) {transpose_a = false, transpose_b = false} : (tensor<1x2x1xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  %cos = ov.Cos(%angles) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %weights = ov.Dequantize(%stored, %scale) {destination_type = "f32"} : (tensor<1x2xui8>, tensor<1x1xf16>) -> tensor<1x2xf32>
  %flat = ov.Reshape(%weights, %pattern) {special_zero = false} : (tensor<1x2xf32>, tensor<3xi64>) -> tensor<1x2x1xf32>
  %y = ov.Multiply(%x, %flat) : (tensor<1x2x4xf32>, tensor<1x2x1xf32>) -> tensor<1x2x4xf32>
  func.return %cos, %y : tensor<1x2x4xf32>, tensor<1x2x4xf32>
}

// CHECK:     ov.Dequantize({{.*}}) {destination_type = "f32"}
// CHECK:     ov.Cos({{.*}}) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
// CHECK:     ov.Dequantize({{.*}}) {destination_type = "f16"}
// CHECK:     ov.Multiply({{.*}}) : (tensor<1x2x4xf16>, tensor<1x2x1xf16>) -> tensor<1x2x4xf16>
