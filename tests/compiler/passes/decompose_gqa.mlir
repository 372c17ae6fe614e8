// PASS: decompose-gqa
// TOLERANCE: 1e-5
// NUMBERS: s=i32<6[1]
// A token at any position: its row is stored at its place, and its rotated query attends to all rows up to it.

func.func @main(%q: tensor<1x2x1x4xf32> {ov.names = "q"}, %k: tensor<1x1x1x4xf32> {ov.names = "k"}, %v: tensor<1x1x1x4xf32> {ov.names = "v"}, %pk: tensor<1x1x6x4xf32> {ov.names = "pk"}, %pv: tensor<1x1x6x4xf32> {ov.names = "pv"}, %s: tensor<1xi32> {ov.names = "s"}, %cos: tensor<6x2xf32> {ov.names = "cos"}, %sin: tensor<6x2xf32> {ov.names = "sin"}) -> (tensor<1x1x8xf32> {ov.names = "y"}, tensor<1x1x6x4xf32> {ov.names = "nk"}, tensor<1x1x6x4xf32> {ov.names = "nv"}) {
  %y, %nk, %nv = ov.GroupQueryAttention(%q, %k, %v, %pk, %pv, %s, %s, %cos, %sin) {num_heads = 2 : i64, kv_num_heads = 1 : i64, scale = 0.0 : f64, do_rotary = true, rotary_interleaved = false, local_window_size = -1 : i64, causal = true, kv_cache_bit_width = 0 : i64, sliding_window_cache = false, smooth_softmax = false, k_quant_type = "NONE", v_quant_type = "NONE"} : (tensor<1x2x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<6x2xf32>, tensor<6x2xf32>) -> (tensor<1x1x8xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>)
  func.return %y, %nk, %nv : tensor<1x1x8xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>
}

// CHECK:      %[[ROW:.*]] = ov.Add({{.*}} -> tensor<1xi32>
// CHECK:      ov.Gather(%cos, {{.*}} -> tensor<1x1x2xf32>
// CHECK:      ov.Equal({{.*}} -> tensor<6x1xi1>
// CHECK:      %[[K:.*]] = ov.Select({{.*}}, %pk)
// CHECK:      %[[V:.*]] = ov.Select({{.*}}, %v, %pv)
// CHECK:      ov.LessEqual({{.*}} -> tensor<1x6xi1>
// CHECK:      ov.ScaledDotProductAttention({{.*}} -> tensor<1x2x1x4xf32>
// CHECK-NOT:  ov.GroupQueryAttention
// CHECK:      func.return %{{.*}}, %[[K]], %[[V]]
