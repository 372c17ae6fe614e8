// PASS: tile{platform="4000" tiles=4}
// NUMBERS: no
// Many rows are split over height, one row over the kernel; a small matmul stays on one tile.

func.func @main(%x: tensor<1x1024x256xf16> {ov.names = "x"}, %row: tensor<1x1x2048xf16> {ov.names = "row"}, %w: tensor<8192x256xf16> {ov.names = "w"}, %v: tensor<8192x2048xf16> {ov.names = "v"}, %few: tensor<1x1x256xf16> {ov.names = "few"}, %small: tensor<64x256xf16> {ov.names = "small"}) -> (tensor<1x1024x8192xf16> {ov.names = "a"}, tensor<1x1x8192xf16> {ov.names = "b"}, tensor<1x1x64xf16> {ov.names = "c"}) {
  %a = npu.matmul(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<1x1024x256xf16>, tensor<8192x256xf16>) -> tensor<1x1024x8192xf16>
  %b = npu.matmul(%row, %v) {transpose_a = false, transpose_b = true} : (tensor<1x1x2048xf16>, tensor<8192x2048xf16>) -> tensor<1x1x8192xf16>
  %c = npu.matmul(%few, %small) {transpose_a = false, transpose_b = true} : (tensor<1x1x256xf16>, tensor<64x256xf16>) -> tensor<1x1x64xf16>
  func.return %a, %b, %c : tensor<1x1024x8192xf16>, tensor<1x1x8192xf16>, tensor<1x1x64xf16>
}

// CHECK: npu.matmul({{.*}}) {{.*}}tile = array<i64: 256, 512, 256>, tiles = 4 : i64, split = "m"} : (tensor<1x1024x256xf16>
// CHECK: npu.matmul({{.*}}) {{.*}}tile = array<i64: 1, {{[0-9]+}}, {{[0-9]+}}>, tiles = 4 : i64, split = "n"} : (tensor<1x1x2048xf16>, tensor<8192
// CHECK: npu.matmul({{.*}}) {{.*}}tile = array<i64: 1, 64, 256>, tiles = 1 : i64, split = "n"}
