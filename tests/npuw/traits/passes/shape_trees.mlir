// PASS: shape-trees{tokens=2 past=3}
// NUMBERS: no
// VERIFY: no

func.func @main(%mask: tensor<1x1x?x?xf32> {ov.names = "mask"}, %tree: tensor<1x1x?x?xf32> {ov.names = "eagle_tree_mask"}) -> (tensor<1x1x?x?xf32> {ov.names = "y"}) {
  %both = ov.Add(%mask, %tree) : (tensor<1x1x?x?xf32>, tensor<1x1x?x?xf32>) -> tensor<1x1x?x?xf32>
  %y = ov.Abs(%both) : (tensor<1x1x?x?xf32>) -> tensor<1x1x?x?xf32>
  func.return %y : tensor<1x1x?x?xf32>
}

// CHECK: tensor<1x1x2x5xf32> {ov.names = "eagle_tree_mask"}
