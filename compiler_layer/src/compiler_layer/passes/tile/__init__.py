"""The ``tile`` pass: blocks and strategies chosen by what they cost.

tiling     the pass: which choice goes to which op
machine    what a choice is priced for: engines, CMX, and the price of loading ahead
matmul     products: SplitOverHeight, SplitOverKernel or Clustering, and blocks
attention  all scores of a block of rows at once, or an online softmax over blocks of keys
kernel     SHAVE kernels: blocks of their domain

Each kind is a pure function of a problem (shapes and element types) and a machine. It lists
candidates that fit CMX, prices each in closed form, and takes the cheapest; equal problems, such as
those of equal layers, are solved once.
"""

from compiler_layer.passes.tile.tiling import Tile

__all__ = ["Tile"]
