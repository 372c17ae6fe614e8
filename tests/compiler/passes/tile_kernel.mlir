// PASS: tile{platform="4000" tiles=4}
// NUMBERS: no
// Blocks differ in their heads only: an operand that repeats over heads is broadcast to all tiles.

func.func @main(%x: tensor<1x32x1024x64xf16> {ov.names = "x"}, %c: tensor<1x1x1024x64xf16> {ov.names = "c"}) -> (tensor<1x32x1024x64xf16> {ov.names = "y"}) {
  %y = npu.kernel(%x, %c) {
  ^bb0(%a: tensor<1x32x1024x64xf16>, %b: tensor<1x1x1024x64xf16>):
    %r = ov.Multiply(%a, %b) : (tensor<1x32x1024x64xf16>, tensor<1x1x1024x64xf16>) -> tensor<1x32x1024x64xf16>
    npu.yield %r : tensor<1x32x1024x64xf16>
  } : (tensor<1x32x1024x64xf16>, tensor<1x1x1024x64xf16>) -> tensor<1x32x1024x64xf16>
  func.return %y : tensor<1x32x1024x64xf16>
}

// CHECK: {tile = array<i64: 1, 2, 1024, 64>, tiles = 4 : i64}
