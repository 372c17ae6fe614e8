// PASS: tile{platform="4000" tiles=4}
// NUMBERS: no
// Capped logits of a large vocabulary: rows that do not fit CMX are cut along the columns. Rows that fit are not cut.

func.func @main(%x: tensor<1x1x256155xf16> {ov.names = "x"}, %few: tensor<1x1x128256xf16> {ov.names = "few"}) -> (tensor<1x1x256155xf32> {ov.names = "y"}, tensor<1x1x128256xf32> {ov.names = "z"}) {
  %y = npu.kernel(%x) {
  ^bb0(%a: tensor<1x1x256155xf16>):
    %t = ov.Tanh(%a) : (tensor<1x1x256155xf16>) -> tensor<1x1x256155xf16>
    %r = ov.Convert(%t) {destination_type = "f32"} : (tensor<1x1x256155xf16>) -> tensor<1x1x256155xf32>
    npu.yield %r : tensor<1x1x256155xf32>
  } : (tensor<1x1x256155xf16>) -> tensor<1x1x256155xf32>
  %z = npu.kernel(%few) {
  ^bb0(%a: tensor<1x1x128256xf16>):
    %t = ov.Tanh(%a) : (tensor<1x1x128256xf16>) -> tensor<1x1x128256xf16>
    %r = ov.Convert(%t) {destination_type = "f32"} : (tensor<1x1x128256xf16>) -> tensor<1x1x128256xf32>
    npu.yield %r : tensor<1x1x128256xf32>
  } : (tensor<1x1x128256xf16>) -> tensor<1x1x128256xf32>
  func.return %y, %z : tensor<1x1x256155xf32>, tensor<1x1x128256xf32>
}

// CHECK: {tile = array<i64: 1, 1, 32064>, tiles = 4 : i64} : (tensor<1x1x256155xf16>)
// CHECK: {tile = array<i64: 1, 1, 128256>, tiles = 1 : i64} : (tensor<1x1x128256xf16>)
