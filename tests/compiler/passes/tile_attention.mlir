// PASS: tile{platform="3720"}
// NUMBERS: no
// All scores of a few positions fit CMX; of 4096 positions only those of a block of keys do.

func.func @main(%q: tensor<1x8x256x32xf16> {ov.names = "q"}, %k: tensor<1x4x256x32xf16> {ov.names = "k"}, %v: tensor<1x4x256x32xf16> {ov.names = "v"}, %ql: tensor<1x1x4096x128xf32> {ov.names = "ql"}, %kl: tensor<1x1x4096x128xf32> {ov.names = "kl"}, %vl: tensor<1x1x4096x128xf32> {ov.names = "vl"}) -> (tensor<1x8x256x32xf16> {ov.names = "a"}, tensor<1x1x4096x128xf32> {ov.names = "b"}) {
  %a = npu.attention %q keys %k values %v {scale = 0.25 : f64} : tensor<1x8x256x32xf16> keys tensor<1x4x256x32xf16> values tensor<1x4x256x32xf16> -> tensor<1x8x256x32xf16>
  %b = npu.attention %ql keys %kl values %vl {scale = 0.25 : f64} : tensor<1x1x4096x128xf32> keys tensor<1x1x4096x128xf32> values tensor<1x1x4096x128xf32> -> tensor<1x1x4096x128xf32>
  func.return %a, %b : tensor<1x8x256x32xf16>, tensor<1x1x4096x128xf32>
}

// CHECK: npu.attention {{.*}}tile = array<i64: {{[0-9]+}}, 256, 256>, tiles = 2 : i64}
// CHECK: npu.attention {{.*}}tile = array<i64: {{[0-9]+}}, [[KEYS:[0-9]+]], [[KEYS]]>, tiles = 2 : i64}
