// PASS: lower-gather
// NUMBERS: ids=i64<2[1,3]
// Rows of scales are looked up together with the rows of the weights.

func.func @main(%ids: tensor<1x3xi64> {ov.names = "ids"}) -> (tensor<1x3x4xf32> {ov.names = "y"}) {
  %stored = ov.Constant #ov.inline<u8 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<2x2x2xui8>
  %zero = ov.Constant #ov.inline<u8 [1]> : tensor<1x1x1xui8>
  %scale = ov.Constant #ov.inline<f16 [0.5, 0.25, 1.0, 2.0]> : tensor<2x2x1xf16>
  %pattern = ov.Constant #ov.inline<i64 [2, 4]> : tensor<2xi64>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %w = ov.Dequantize(%stored, %scale, %zero) {destination_type = "f32"} : (tensor<2x2x2xui8>, tensor<2x2x1xf16>, tensor<1x1x1xui8>) -> tensor<2x2x2xf32>
  %table = ov.Reshape(%w, %pattern) {special_zero = false} : (tensor<2x2x2xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %y = ov.Gather(%table, %ids, %axis) {ov.name = "embed", batch_dims = 0 : i64} : (tensor<2x4xf32>, tensor<1x3xi64>, tensor<i64>) -> tensor<1x3x4xf32>
  func.return %y : tensor<1x3x4xf32>
}

// CHECK-DAG:  npu.gather(%{{.*}}, %[[IDS:.*]]) : (tensor<2x4xui8>, tensor<1x3xi64>) -> tensor<1x3x4xui8>
// CHECK-DAG:  npu.gather(%{{.*}}, %{{.*}}) : (tensor<2x2xf16>, tensor<1x3xi64>) -> tensor<1x3x2xf16>
// CHECK:      ov.Dequantize{{.*}} : (tensor<1x3x2x2xui8>, tensor<1x3x2x1xf16>, tensor<1x1x1xui8>) -> tensor<1x3x2x2xf32>
// CHECK-NEXT: ov.Constant
// CHECK-NEXT: ov.Reshape{{.*}} {ov.name = "embed"
