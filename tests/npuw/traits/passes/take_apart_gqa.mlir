// PASS: take-apart-gqa{tokens=1 past=3}
// NUMBERS: no
// VERIFY: no
// seqlens_k counts the tokens of attention_mask less 1.

func.func @main(%ids: tensor<?x?xi64> {ov.names = "input_ids"}, %mask: tensor<?x?xi64> {ov.names = "attention_mask"}, %q: tensor<1x2x?x4xf32> {ov.names = "q"}, %k: tensor<1x1x?x4xf32> {ov.names = "k"}, %v: tensor<1x1x?x4xf32> {ov.names = "v"}) -> (tensor<1x?x8xf32> {ov.names = "y"}) {
  %columns = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %all = ov.ReduceSum(%mask, %columns) {keep_dims = false} : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?xi64>
  %before = ov.Subtract(%all, %one) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?xi64>
  %s = ov.Convert(%before) {destination_type = "i32"} : (tensor<?xi64>) -> tensor<?xi32>
  %pk = ov.ReadValue() {variable_id = "0.key"} : () -> tensor<1x1x?x4xf32>
  %pv = ov.ReadValue() {variable_id = "0.value"} : () -> tensor<1x1x?x4xf32>
  %y, %nk, %nv = ov.GroupQueryAttention(%q, %k, %v, %pk, %pv, %s, %s) {num_heads = 2 : i64, kv_num_heads = 1 : i64, scale = 0.0 : f64, do_rotary = false, rotary_interleaved = false, local_window_size = -1 : i64, causal = true, kv_cache_bit_width = 0 : i64, sliding_window_cache = false, smooth_softmax = false, k_quant_type = "NONE", v_quant_type = "NONE"} : (tensor<1x2x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<1x?x8xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>)
  %kept = ov.Assign(%nk) {variable_id = "0.key"} : (tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %also = ov.Assign(%nv) {variable_id = "0.value"} : (tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  func.return %y : tensor<1x?x8xf32>
}

// CHECK:      %[[K:.*]] = ov.Concat(%pk, %k) {axis = 2 : i64}
// CHECK-NEXT: %[[V:.*]] = ov.Concat(%pv, %v) {axis = 2 : i64}
// CHECK:      ov.LessEqual({{.*}} -> tensor<1x1x?x?xi1>
// CHECK:      %[[MASK:.*]] = ov.Select({{.*}} -> tensor<?x1x?x?xf32>
// CHECK:      ov.ScaledDotProductAttention(%q, {{.*}}, %[[MASK]], {{.*}}
// CHECK:      ov.Assign(%[[K]]) {variable_id = "0.key"}
// CHECK-NEXT: ov.Assign(%[[V]]) {variable_id = "0.value"}
// CHECK-NOT:  ov.GroupQueryAttention
