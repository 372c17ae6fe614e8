// PASS: drop-trees
// NUMBERS: no

func.func @main(%mask: tensor<1x1x?x?xf32> {ov.names = "mask"}, %tree: tensor<1x1x?x?xf32> {ov.names = "eagle_tree_mask"}) -> (tensor<1x1x?x?xf32> {ov.names = "y"}) {
  %both = ov.Add(%mask, %tree) : (tensor<1x1x?x?xf32>, tensor<1x1x?x?xf32>) -> tensor<1x1x?x?xf32>
  %y = ov.Abs(%both) : (tensor<1x1x?x?xf32>) -> tensor<1x1x?x?xf32>
  func.return %y : tensor<1x1x?x?xf32>
}

// CHECK:     func.func @main(%[[MASK:.*]]: tensor<1x1x?x?xf32> {ov.names = "mask"}) ->
// CHECK-NEXT: ov.Abs(%[[MASK]])
