// PASS: separate-weights
// NUMBERS: no
// A weight that is used twice is one input; an inline constant stays.

func.func @main(%x: tensor<1x2x4xf16> {ov.names = "x"}) -> (tensor<1x2x2xf16> {ov.names = "y"}, tensor<1x2x2xf16> {ov.names = "z"}) {
  %a = ov.Constant #ov.file<"folder/model.bin", 64, 8, i8> : tensor<2x4xi8>
  %b = ov.Constant #ov.file<"folder/model.bin", 64, 8, i8> : tensor<2x4xi8>
  %s = ov.Constant #ov.inline<f16 [0.5, 0.25]> : tensor<2x1xf16>
  %y = npu.matmul(%x, %a) scales %s {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf16>, tensor<2x4xi8>) scales tensor<2x1xf16> -> tensor<1x2x2xf16>
  %z = npu.matmul(%x, %b) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf16>, tensor<2x4xi8>) -> tensor<1x2x2xf16>
  func.return %y, %z : tensor<1x2x2xf16>, tensor<1x2x2xf16>
}

// CHECK:      func.func @main(%{{.*}} {ov.names = "x"}, %[[W:.*]]: tensor<2x4xi8> {ov.names = "vpux_ow_64_8_i8_i8@model.bin"})
// CHECK-NEXT:   %[[S:.*]] = ov.Constant #ov.inline
// CHECK-NEXT:   npu.matmul(%{{.*}}, %[[W]]) scales %[[S]]
// CHECK-NEXT:   npu.matmul(%{{.*}}, %[[W]])
