// PASS: fuse-dequantize

func.func @main(%x: tensor<1x3x8xf32> {ov.names = "x"}) -> (tensor<1x3x4xf32> {ov.names = "y"}, tensor<1x3x2xf32> {ov.names = "z"}, tensor<1x3x2xf32> {ov.names = "u"}) {
  %stored = ov.Constant #ov.inline<u4 "AQIDBAUGBwgBAgMEBQYHCAECAwQFBgcIAQIDBAUGBwg="> {ov.name = "w"} : tensor<4x2x4xui4>
  %zero = ov.Constant #ov.inline<u4 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<4x2x1xui4>
  %scale = ov.Constant #ov.inline<f16 [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]> : tensor<4x2x1xf16>
  %pattern = ov.Constant #ov.inline<i64 [4, 8]> : tensor<2xi64>
  %wide = ov.Convert(%stored) {destination_type = "f16"} : (tensor<4x2x4xui4>) -> tensor<4x2x4xf16>
  %wide_zero = ov.Convert(%zero) {destination_type = "f16"} : (tensor<4x2x1xui4>) -> tensor<4x2x1xf16>
  %centred = ov.Subtract(%wide, %wide_zero) : (tensor<4x2x4xf16>, tensor<4x2x1xf16>) -> tensor<4x2x4xf16>
  %scaled = ov.Multiply(%centred, %scale) {ov.name = "w/fq_weights_1"} : (tensor<4x2x4xf16>, tensor<4x2x1xf16>) -> tensor<4x2x4xf16>
  %flat = ov.Reshape(%scaled, %pattern) {special_zero = false} : (tensor<4x2x4xf16>, tensor<2xi64>) -> tensor<4x8xf16>
  %weights = ov.Convert(%flat) {destination_type = "f32"} : (tensor<4x8xf16>) -> tensor<4x8xf32>
  %y = ov.MatMul(%x, %weights) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>, tensor<4x8xf32>) -> tensor<1x3x4xf32>

  // Without a zero point, and without a group; a factor that is not a table of rows stays.
  %plain = ov.Constant #ov.inline<i8 [1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8]> : tensor<2x8xi8>
  %row = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<2x1xf32>
  %number = ov.Convert(%plain) {destination_type = "f32"} : (tensor<2x8xi8>) -> tensor<2x8xf32>
  %b = ov.Multiply(%row, %number) : (tensor<2x1xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %z = ov.MatMul(%x, %b) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>, tensor<2x8xf32>) -> tensor<1x3x2xf32>

  // 8-bit floats.
  %floats = ov.Constant #ov.inline<f8e4m3 "AQIDBAUGBwgBAgMEBQYHCA=="> : tensor<2x8xf8E4M3FN>
  %float = ov.Convert(%floats) {destination_type = "f32"} : (tensor<2x8xf8E4M3FN>) -> tensor<2x8xf32>
  %c = ov.Multiply(%float, %row) : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %u = ov.MatMul(%x, %c) {transpose_a = false, transpose_b = true} : (tensor<1x3x8xf32>, tensor<2x8xf32>) -> tensor<1x3x2xf32>
  func.return %y, %z, %u : tensor<1x3x4xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>
}

// CHECK:      %[[STORED:.*]] = ov.Constant {{.*}} : tensor<4x2x4xui4>
// CHECK-NEXT: %[[ZERO:.*]] = ov.Constant {{.*}} : tensor<4x2x1xui4>
// CHECK-NEXT: %[[SCALE:.*]] = ov.Constant {{.*}} : tensor<4x2x1xf16>
// CHECK:      %[[W:.*]] = ov.Dequantize(%[[STORED]], %[[SCALE]], %[[ZERO]]) {ov.name = "w/fq_weights_1", destination_type = "f32"}
// CHECK-SAME: -> tensor<4x2x4xf32>
// CHECK-NEXT: %[[FLAT:.*]] = ov.Reshape(%[[W]]
// CHECK-SAME: -> tensor<4x8xf32>
// CHECK-NEXT: ov.MatMul(%{{.*}}, %[[FLAT]])
// CHECK:      ov.Dequantize(%{{.*}}, %{{.*}}) {destination_type = "f32"} : (tensor<2x8xi8>, tensor<2x1xf32>) -> tensor<2x8xf32>
// CHECK:      ov.Dequantize(%{{.*}}, %{{.*}}) {destination_type = "f32"} : (tensor<2x8xf8E4M3FN>, tensor<2x1xf32>) -> tensor<2x8xf32>
// CHECK-NOT:  ov.Convert
