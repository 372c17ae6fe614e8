// PASS: count-positions{tokens=2}
// NUMBERS: no
// VERIFY: no
// The model takes no positions: query numbers become token indices.

func.func @main(%total: tensor<i64> {ov.names = "total"}, %stored: tensor<i64> {ov.names = "stored"}) -> (tensor<?xf32> {ov.names = "y"}) {
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<i64>
  %q = ov.Range(%stored, %total, %one) {output_type = "i64"} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %y = ov.Convert(%q) {destination_type = "f32"} : (tensor<?xi64>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// CHECK:      %[[POSITIONS:\w+]]: tensor<1x2xi64> {ov.names = "cache_position"})
// CHECK:      %[[TOKENS:.*]] = ov.Reshape(%[[POSITIONS]], {{.*}} -> tensor<2xi64>
// CHECK-NEXT: ov.Convert(%[[TOKENS]])
