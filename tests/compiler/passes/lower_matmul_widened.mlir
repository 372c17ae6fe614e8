// PASS: lower-matmul
// The DPU widens its operands itself: a matmul of values converted to f32 reads them before conversion.

func.func @main(%x: tensor<1x2x4xf16> {ov.names = "x"}, %w: tensor<1x2x4xbf16> {ov.names = "w"}, %i: tensor<1x2x4xi8> {ov.names = "i"}) -> (tensor<1x2x2xf32> {ov.names = "y"}, tensor<1x2x2xf32> {ov.names = "z"}) {
  %a = ov.Convert(%x) {destination_type = "f32"} : (tensor<1x2x4xf16>) -> tensor<1x2x4xf32>
  %b = ov.Convert(%w) {destination_type = "f32"} : (tensor<1x2x4xbf16>) -> tensor<1x2x4xf32>
  %c = ov.Convert(%i) {destination_type = "f32"} : (tensor<1x2x4xi8>) -> tensor<1x2x4xf32>
  %y = ov.MatMul(%a, %b) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x2xf32>
  %z = ov.MatMul(%a, %c) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x2xf32>
  func.return %y, %z : tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

// CHECK:        %[[C:.*]] = ov.Convert
// CHECK-NEXT:   npu.matmul({{.*}}) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf16>, tensor<1x2x4xbf16>) -> tensor<1x2x2xf32>
// CHECK-NEXT:   npu.matmul(%{{.*}}, %[[C]]) {transpose_a = false, transpose_b = true} : (tensor<1x2x4xf16>, tensor<1x2x4xf32>) -> tensor<1x2x2xf32>
