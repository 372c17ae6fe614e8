"""Row-wise ops in token tiles (NPUW_SPATIAL).

Much of a prompt's static model computes each token by itself: matmuls, norms, the MLP. Such a block
is compiled for NPUW_SPATIAL_NWAY tokens instead of a whole prompt's, and runs tile by tile. So its
program is small, and tiles without tokens are skipped (NPUW_SPATIAL_DYN): a prompt of 20 tokens
pays for one tile of a model that takes 1,024.

    device     compilation and loading of blocks
    tokens     rows that hold tokens, according to the model's own mask
    container  a tile's program as bytes, which a cache stores like a blob
    program    a block in tiles, as if it were whole

``execution.partition.row_blocks`` isolates the blocks. ``compiler_layer.partition`` defines a
block's ops and its tiles (``row_wise``, ``row_parts``, ``row_tiles``).

Source: the original's spatial execution; fact sheet npuw §b.2.
"""
