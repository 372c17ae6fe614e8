// PASS: fold-blocks
// NUMBERS: no
// Of four equal layers the first and the last stay. Each differing constant holds the values of all
// layers, each variable's ids are recorded, and the last layer reads the first one's result.

func.func @main(%ids: tensor<1x2xi64> {ov.names = "ids"}) -> (tensor<1x2x4xf32> {ov.names = "y"}) {
  %table = ov.Constant #ov.file<"model.bin", 0, 128, f32> : tensor<8x4xf32>
  %axis = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %x = ov.Gather(%table, %ids, %axis) {batch_dims = 0 : i64} : (tensor<8x4xf32>, tensor<1x2xi64>, tensor<i64>) -> tensor<1x2x4xf32>
  %w0 = ov.Constant #ov.file<"model.bin", 1000, 64, f32> {ov.name = "layers.0.w"} : tensor<4x4xf32>
  %h0 = ov.MatMul(%x, %w0) {transpose_a = false, transpose_b = true, ov.name = "layers.0.mm"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %p0 = ov.ReadValue() {variable_id = "past.0"} : () -> tensor<1x2x4xf32>
  %s0 = ov.Add(%h0, %p0) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %a0 = ov.Assign(%s0) {variable_id = "past.0"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %y0 = ov.Add(%s0, %x) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %w1 = ov.Constant #ov.file<"model.bin", 2000, 64, f32> {ov.name = "layers.1.w"} : tensor<4x4xf32>
  %h1 = ov.MatMul(%y0, %w1) {transpose_a = false, transpose_b = true, ov.name = "layers.1.mm"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %p1 = ov.ReadValue() {variable_id = "past.1"} : () -> tensor<1x2x4xf32>
  %s1 = ov.Add(%h1, %p1) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %a1 = ov.Assign(%s1) {variable_id = "past.1"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %y1 = ov.Add(%s1, %y0) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %w2 = ov.Constant #ov.file<"model.bin", 3000, 64, f32> {ov.name = "layers.2.w"} : tensor<4x4xf32>
  %h2 = ov.MatMul(%y1, %w2) {transpose_a = false, transpose_b = true, ov.name = "layers.2.mm"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %p2 = ov.ReadValue() {variable_id = "past.2"} : () -> tensor<1x2x4xf32>
  %s2 = ov.Add(%h2, %p2) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %a2 = ov.Assign(%s2) {variable_id = "past.2"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %y2 = ov.Add(%s2, %y1) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %w3 = ov.Constant #ov.file<"model.bin", 4000, 64, f32> {ov.name = "layers.3.w"} : tensor<4x4xf32>
  %h3 = ov.MatMul(%y2, %w3) {transpose_a = false, transpose_b = true, ov.name = "layers.3.mm"} : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %p3 = ov.ReadValue() {variable_id = "past.3"} : () -> tensor<1x2x4xf32>
  %s3 = ov.Add(%h3, %p3) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %a3 = ov.Assign(%s3) {variable_id = "past.3"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %y3 = ov.Add(%s3, %y2) {auto_broadcast = "numpy"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  func.return %y3 : tensor<1x2x4xf32>
}

// CHECK:      ov.repeated_ids = {{\[}}["past.0", "past.1", "past.2", "past.3"]]
// CHECK:      %[[X:.*]] = ov.Gather
// CHECK:      %[[W0:.*]] = ov.Constant #ov.repeated<0 of [#ov.file<"model.bin", 1000, 64, f32>, #ov.file<"model.bin", 2000, 64, f32>, #ov.file<"model.bin", 3000, 64, f32>, #ov.file<"model.bin", 4000, 64, f32>]>
// CHECK-NEXT: ov.MatMul(%[[X]], %[[W0]])
// CHECK:      ov.ReadValue() {variable_id = "past.0"}
// CHECK:      %[[Y:.*]] = ov.Add(%{{.*}}, %[[X]])
// CHECK:      %[[W3:.*]] = ov.Constant #ov.repeated<3 of
// CHECK-NEXT: ov.MatMul(%[[Y]], %[[W3]])
// CHECK:      ov.ReadValue() {variable_id = "past.3"}
// CHECK-NOT:  past.1
// CHECK:      %[[END:.*]] = ov.Add(%{{.*}}, %[[Y]])
// CHECK-NEXT: func.return %[[END]]
