// PASS: fuse-dequantize
// TOLERANCE: 1e-3
// Weights that are inputs, as in NPUW's submodels; groups that come first are transposed as stored.

func.func @main(%w: tensor<2x3x4xi4> {ov.names = "w"}, %s: tensor<2x3x1xf16> {ov.names = "s"}, %v: tensor<3x4xui8> {ov.names = "v"}, %z: tensor<3x1xui8> {ov.names = "z"}, %t: tensor<3x1xf16> {ov.names = "t"}, %ids: tensor<3x4xi64> {ov.names = "ids"}) -> (tensor<3x8xf32> {ov.names = "y"}, tensor<3x4xf32> {ov.names = "u"}, tensor<3x4xf16> {ov.names = "n"}) {
  %order = ov.Constant #ov.inline<i64 [1, 0, 2]> : tensor<3xi64>
  %pattern = ov.Constant #ov.inline<i64 [3, 8]> : tensor<2xi64>
  %wide = ov.Convert(%w) {destination_type = "f16"} : (tensor<2x3x4xi4>) -> tensor<2x3x4xf16>
  %scaled = ov.Multiply(%wide, %s) : (tensor<2x3x4xf16>, tensor<2x3x1xf16>) -> tensor<2x3x4xf16>
  %turned = ov.Transpose(%scaled, %order) : (tensor<2x3x4xf16>, tensor<3xi64>) -> tensor<3x2x4xf16>
  %flat = ov.Reshape(%turned, %pattern) {special_zero = false} : (tensor<3x2x4xf16>, tensor<2xi64>) -> tensor<3x8xf16>
  %y = ov.Convert(%flat) {destination_type = "f32"} : (tensor<3x8xf16>) -> tensor<3x8xf32>

  %bytes = ov.Convert(%v) {destination_type = "f16"} : (tensor<3x4xui8>) -> tensor<3x4xf16>
  %zero = ov.Convert(%z) {destination_type = "f16"} : (tensor<3x1xui8>) -> tensor<3x1xf16>
  %centred = ov.Subtract(%bytes, %zero) : (tensor<3x4xf16>, tensor<3x1xf16>) -> tensor<3x4xf16>
  %rows = ov.Multiply(%centred, %t) : (tensor<3x4xf16>, tensor<3x1xf16>) -> tensor<3x4xf16>
  %u = ov.Convert(%rows) {destination_type = "f32"} : (tensor<3x4xf16>) -> tensor<3x4xf32>

  // Wide integers are no weights.
  %places = ov.Convert(%ids) {destination_type = "f16"} : (tensor<3x4xi64>) -> tensor<3x4xf16>
  %n = ov.Multiply(%places, %t) : (tensor<3x4xf16>, tensor<3x1xf16>) -> tensor<3x4xf16>
  func.return %y, %u, %n : tensor<3x8xf32>, tensor<3x4xf32>, tensor<3x4xf16>
}

// CHECK:      %[[TURNED:.*]] = ov.Transpose(%w, %{{.*}}) : (tensor<2x3x4xi4>, tensor<3xi64>) -> tensor<3x2x4xi4>
// CHECK-NEXT: %[[SCALES:.*]] = ov.Transpose(%s, %{{.*}}) : (tensor<2x3x1xf16>, tensor<3xi64>) -> tensor<3x2x1xf16>
// CHECK-NEXT: %[[WEIGHTS:.*]] = ov.Dequantize(%[[TURNED]], %[[SCALES]]) {destination_type = "f32"}
// CHECK:      ov.Reshape(%[[WEIGHTS]], %{{.*}}) {special_zero = false} : (tensor<3x2x4xf32>, tensor<2xi64>) -> tensor<3x8xf32>
// CHECK:      ov.Dequantize(%v, %t, %z) {destination_type = "f32"}
// CHECK:      %places = ov.Convert(%ids)
// CHECK-NEXT: ov.Multiply(%places, %t)
