"""The ``tile`` pass: blocks and strategies chosen by a cost model.

tiling     the pass, and the mapping of ops to choices
machine    the priced machine: engines, CMX, and the overlap of loads and work
matmul     matmuls: SplitOverHeight, SplitOverKernel or Clustering, and blocks
attention  all scores of a block of rows together, or an online softmax over blocks of keys
kernel     SHAVE kernels: blocks of their domain

Each choice is a pure function of a problem (shapes and element types) and a machine. It lists
candidates that fit CMX, prices each in closed form, and takes the cheapest. Results are cached, so
equal problems, such as those of equal layers, are solved once.
"""

from compiler_layer.passes.tile.tiling import Tile

__all__ = ["Tile"]
