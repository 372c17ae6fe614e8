// PASS: decompose-pooling

func.func @main(%x: tensor<1x2x4x4xf32> {ov.names = "x"}) -> (tensor<1x2x2x2xf32> {ov.names = "y"}, tensor<1x2x1x2xf32> {ov.names = "z"}) {
  %y, %i = ov.MaxPool(%x) {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, dilations = array<i64: 1, 1>, rounding_type = "floor", auto_pad = "explicit", index_element_type = "i64", axis = 0 : i64} : (tensor<1x2x4x4xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xi64>)
  %z = ov.AvgPool(%x) {kernel = array<i64: 3, 1>, strides = array<i64: 3, 2>, pads_begin = array<i64: 1, 0>, pads_end = array<i64: 0, 0>, rounding_type = "floor", auto_pad = "explicit", "exclude-pad" = true} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x2xf32>
  func.return %y, %z : tensor<1x2x2x2xf32>, tensor<1x2x1x2xf32>
}

// CHECK-NOT:  ov.MaxPool
// CHECK:      ov.Slice
// CHECK:      ov.Maximum{{.*}} -> tensor<1x2x2x2xf32>
// CHECK:      %[[PADDED:.*]] = ov.Pad{{.*}} {pad_mode = "constant"} {{.*}} -> tensor<1x2x5x4xf32>
// CHECK:      %[[COUNTS:.*]] = ov.Constant {{.*}} : tensor<1x2xf32>
// CHECK-NEXT: ov.Multiply(%{{.*}}, %[[COUNTS]]) {{.*}} -> tensor<1x2x1x2xf32>
