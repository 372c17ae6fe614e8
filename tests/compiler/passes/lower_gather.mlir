// PASS: lower-gather
// NUMBERS: ids=i64<3[1,2]
// Only the looked-up rows are converted, and DMA reads the i64 ids unchanged.

func.func @main(%ids: tensor<1x2xi64> {ov.names = "ids"}) -> (tensor<1x2x4xf32> {ov.names = "y"}) {
  %stored = ov.Constant #ov.inline<f16 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : tensor<3x4xf16>
  %table = ov.Convert(%stored) {destination_type = "f32"} : (tensor<3x4xf16>) -> tensor<3x4xf32>
  %narrow = ov.Convert(%ids) {destination_type = "i32"} : (tensor<1x2xi64>) -> tensor<1x2xi32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %y = ov.Gather(%table, %narrow, %axis) {batch_dims = 0 : i64} : (tensor<3x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// CHECK:        %[[T:.*]] = ov.Constant {{.*}} : tensor<3x4xf16>
// CHECK-NEXT:   %[[ROWS:.*]] = npu.gather(%[[T]], %{{.*}}) : (tensor<3x4xf16>, tensor<1x2xi64>) -> tensor<1x2x4xf16>
// CHECK-NEXT:   %[[Y:.*]] = ov.Convert(%[[ROWS]]) {destination_type = "f32"}
// CHECK-NEXT:   func.return %[[Y]]
