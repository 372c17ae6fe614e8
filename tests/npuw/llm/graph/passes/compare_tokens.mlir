// PASS: compare-tokens{tokens=2 past=3}
// NUMBERS: no
// VERIFY: no
// Key j is in the window of query i if j > i - 2; the comparison that orders rows (causality) is not replaced.

func.func @main(%total: tensor<i64> {ov.names = "total"}, %stored: tensor<i64> {ov.names = "stored"}) -> (tensor<?x?xi1> {ov.names = "near"}, tensor<?x?xi1> {ov.names = "seen"}) {
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %one = ov.Constant #ov.inline<i64 [1]> : tensor<i64>
  %two = ov.Constant #ov.inline<i64 [2]> : tensor<1x1xi64>
  %row = ov.Constant #ov.inline<i64 [0]> : tensor<1xi64>
  %column = ov.Constant #ov.inline<i64 [1]> : tensor<1xi64>
  %k = ov.Range(%zero, %total, %one) {output_type = "i64"} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %q = ov.Range(%stored, %total, %one) {output_type = "i64"} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %keys = ov.Unsqueeze(%k, %row) : (tensor<?xi64>, tensor<1xi64>) -> tensor<1x?xi64>
  %queries = ov.Unsqueeze(%q, %column) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %begin = ov.Subtract(%queries, %two) : (tensor<?x1xi64>, tensor<1x1xi64>) -> tensor<?x1xi64>
  %near = ov.Greater(%keys, %begin) : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %seen = ov.LessEqual(%keys, %queries) : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  func.return %near, %seen : tensor<?x?xi1>, tensor<?x?xi1>
}

// CHECK:      %[[POSITIONS:\w+]]: tensor<1x2xi64> {ov.names = "cache_position"})
// CHECK:      %[[K:.*]] = ov.Unsqueeze({{.*}}) : (tensor<?xi64>, {{.*}} -> tensor<1x?xi64>
// CHECK-NEXT: %[[Q:.*]] = ov.Unsqueeze({{.*}}) : (tensor<?xi64>, {{.*}} -> tensor<?x1xi64>
// CHECK:      %[[OWN:.*]] = ov.Slice(%[[POSITIONS]], {{.*}}
// CHECK:      %[[NEW:.*]] = ov.Reshape(%[[OWN]], {{.*}} -> tensor<2xi64>
// CHECK-NEXT: %[[PAST:.*]] = ov.Constant #ov.inline<i64 [0, 1, 2]>
// CHECK-NEXT: %[[ALL:.*]] = ov.Concat(%[[PAST]], %[[NEW]])
// CHECK-NEXT: %[[KEYS:.*]] = ov.Unsqueeze(%[[ALL]], {{.*}}
// CHECK:      %[[BEGIN:.*]] = ov.Subtract({{.*}}) : (tensor<2x1xi64>, {{.*}}
// CHECK-NEXT: ov.Greater(%[[KEYS]], %[[BEGIN]])
// CHECK-NEXT: ov.LessEqual(%[[K]], %[[Q]])
