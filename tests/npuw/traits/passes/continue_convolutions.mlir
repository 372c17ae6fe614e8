// PASS: continue-convolutions{tokens=1 generates=true}
// NUMBERS: no
// VERIFY: no
// The branches have different filters; generated tokens use the single-token branch's.

func.func @main(%x: tensor<1x2x?xf32> {ov.names = "x"}, %prompt: tensor<1x1x1xf32> {ov.names = "is_prompt"}, %one: tensor<1x1x1xf32> {ov.names = "is_one"}) -> (tensor<1x2x?xf32> {ov.names = "y"}) {
  %of_prompts = ov.Constant #ov.inline<f32 [1.0, 2.0, 3.0, 4.0]> : tensor<2x1x1x2xf32>
  %of_one = ov.Constant #ov.inline<f32 [5.0, 6.0, 7.0, 8.0]> : tensor<1x2x2xf32>
  %last = ov.Constant #ov.inline<i64 [2]> : tensor<1xi64>
  %begin = ov.Constant #ov.inline<i64 [-2]> : tensor<1xi64>
  %end = ov.Constant #ov.inline<i64 [9223372036854775807]> : tensor<1xi64>
  %step = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %state = ov.ReadValue() {variable_id = "cache_params.past.conv.0"} : () -> tensor<1x2x2xf32>
  %joined = ov.Concat(%state, %x) {axis = 2 : i64} : (tensor<1x2x2xf32>, tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %next = ov.Slice(%joined, %begin, %end, %step, %last) : (tensor<1x2x?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x2x?xf32>
  %kept = ov.Assign(%next) {variable_id = "cache_params.past.conv.0"} : (tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %slid = ov.GroupConvolution(%x, %of_prompts) {strides = array<i64: 1>, pads_begin = array<i64: 1>, pads_end = array<i64: 1>, dilations = array<i64: 1>, auto_pad = "explicit"} : (tensor<1x2x?xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x?xf32>
  %first = ov.Multiply(%slid, %prompt) : (tensor<1x2x?xf32>, tensor<1x1x1xf32>) -> tensor<1x2x?xf32>
  %product = ov.Multiply(%next, %of_one) : (tensor<1x2x?xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  %sum = ov.ReduceSum(%product, %last) {keep_dims = true} : (tensor<1x2x2xf32>, tensor<1xi64>) -> tensor<1x2x1xf32>
  %second = ov.Multiply(%sum, %one) : (tensor<1x2x1xf32>, tensor<1x1x1xf32>) -> tensor<1x2x1xf32>
  %y = ov.Add(%first, %second) : (tensor<1x2x?xf32>, tensor<1x2x1xf32>) -> tensor<1x2x?xf32>
  func.return %y : tensor<1x2x?xf32>
}

// CHECK:      %[[STATE:.*]] = ov.ReadValue() {npuw.no_cache, variable_id = "cache_params.past.conv.0"}
// CHECK-NEXT: %[[JOINED:.*]] = ov.Concat(%[[STATE]], %x) {axis = 2 : i64}
// CHECK:      %[[FILTERS:.*]] = ov.Reshape(%of_one, {{.*}} -> tensor<2x1x1x2xf32>
// CHECK:      %[[FROM:.*]] = ov.Slice(%[[JOINED]], {{.*}}
// CHECK-NEXT: %[[Y:.*]] = ov.GroupConvolution(%[[FROM]], %[[FILTERS]]) {strides = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
// CHECK-NEXT: %[[LAST:.*]] = ov.Slice(%[[JOINED]], {{.*}}
// CHECK-NEXT: ov.Assign(%[[LAST]]) {variable_id = "cache_params.past.conv.0"}
// CHECK-NEXT: func.return %[[Y]]
