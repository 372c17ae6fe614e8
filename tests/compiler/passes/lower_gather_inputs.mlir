// PASS: lower-gather
// NUMBERS: ids=i64<3[1,2]
// A table may be an input, as NPUW passes weights, or computed; indices may be computed, too.

func.func @main(%stored: tensor<3x4xf16> {ov.names = "stored"}, %stack: tensor<3x2x2xi8> {ov.names = "stack"}, %ids: tensor<1x2xi64> {ov.names = "ids"}) -> (tensor<1x2x4xf32> {ov.names = "y"}, tensor<1x2x2x2xf16> {ov.names = "z"}, tensor<1x2x3xf16> {ov.names = "u"}) {
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %none = ov.Constant #ov.inline<i32 [0]> : tensor<i32>
  %table = ov.Convert(%stored) {destination_type = "f32"} : (tensor<3x4xf16>) -> tensor<3x4xf32>
  %narrow = ov.Convert(%ids) {destination_type = "i32"} : (tensor<1x2xi64>) -> tensor<1x2xi32>
  %shifted = ov.Add(%narrow, %none) : (tensor<1x2xi32>, tensor<i32>) -> tensor<1x2xi32>
  %y = ov.Gather(%table, %shifted, %axis) {batch_dims = 0 : i64} : (tensor<3x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<1x2x4xf32>
  %numbers = ov.Convert(%stack) {destination_type = "f16"} : (tensor<3x2x2xi8>) -> tensor<3x2x2xf16>
  %z = ov.Gather(%numbers, %ids, %axis) {batch_dims = 0 : i64} : (tensor<3x2x2xf16>, tensor<1x2xi64>, tensor<i64>) -> tensor<1x2x2x2xf16>
  %order = ov.Constant #ov.inline<i64 [1, 0]> : tensor<2xi64>
  %turned = ov.Transpose(%stored, %order) : (tensor<3x4xf16>, tensor<2xi64>) -> tensor<4x3xf16>
  %u = ov.Gather(%turned, %ids, %axis) {batch_dims = 0 : i64} : (tensor<4x3xf16>, tensor<1x2xi64>, tensor<i64>) -> tensor<1x2x3xf16>
  func.return %y, %z, %u : tensor<1x2x4xf32>, tensor<1x2x2x2xf16>, tensor<1x2x3xf16>
}

// CHECK:      %[[WIDE:.*]] = ov.Convert(%{{.*}}) {destination_type = "i64"} : (tensor<1x2xi32>) -> tensor<1x2xi64>
// CHECK-NEXT: %[[ROWS:.*]] = npu.gather(%stored, %[[WIDE]]) : (tensor<3x4xf16>, tensor<1x2xi64>) -> tensor<1x2x4xf16>
// CHECK-NEXT: ov.Convert(%[[ROWS]]) {destination_type = "f32"}
// CHECK:      %[[LINES:.*]] = ov.Reshape(%stack, %{{.*}}) {special_zero = false} : (tensor<3x2x2xi8>, tensor<2xi64>) -> tensor<3x4xi8>
// CHECK-NEXT: npu.gather(%[[LINES]], %ids) : (tensor<3x4xi8>, tensor<1x2xi64>) -> tensor<1x2x4xi8>
// CHECK:      ov.Convert(%{{.*}}) {destination_type = "f16"} : (tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xf16>
// CHECK:      %turned = ov.Transpose(%stored
// CHECK-NEXT: npu.gather(%turned, %ids)
