// PASS: fuse-dequantize
// TOLERANCE: 0.001
// Weights with several conversions are computed in f32 for all of them; a user in f16 reads f16.

func.func @main(%x: tensor<2x4xf32> {ov.names = "x"}, %h: tensor<2x4xf16> {ov.names = "h"}) -> (tensor<2x4xf32> {ov.names = "y"}, tensor<2x4xf32> {ov.names = "z"}, tensor<2x4xf16> {ov.names = "u"}) {
  %stored = ov.Constant #ov.inline<u8 [255, 254, 253, 252, 251, 77, 3, 1]> : tensor<2x4xui8>
  %scale = ov.Constant #ov.inline<f16 [0.003926, 0.0713]> : tensor<2x1xf16>
  %wide = ov.Convert(%stored) {destination_type = "f16"} : (tensor<2x4xui8>) -> tensor<2x4xf16>
  %scaled = ov.Multiply(%wide, %scale) : (tensor<2x4xf16>, tensor<2x1xf16>) -> tensor<2x4xf16>
  %one = ov.Convert(%scaled) {destination_type = "f32"} : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %y = ov.Add(%x, %one) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %other = ov.Convert(%scaled) {destination_type = "f32"} : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %z = ov.Multiply(%x, %other) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %u = ov.Add(%h, %scaled) : (tensor<2x4xf16>, tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %y, %z, %u : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf16>
}

// CHECK:      %[[NARROW:.*]] = ov.Dequantize({{.*}}) {destination_type = "f16"}
// CHECK-NEXT: %[[ONE:.*]] = ov.Dequantize({{.*}}) {destination_type = "f32"}
// CHECK-NEXT: ov.Add(%{{.*}}, %[[ONE]])
// CHECK-NEXT: %[[OTHER:.*]] = ov.Dequantize({{.*}}) {destination_type = "f32"}
// CHECK-NEXT: ov.Multiply(%{{.*}}, %[[OTHER]])
// CHECK-NEXT: ov.Add(%{{.*}}, %[[NARROW]])
