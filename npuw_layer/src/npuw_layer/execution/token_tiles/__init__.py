"""Runs what works row by row in tiles of rows (NPUW_SPATIAL).

Of a prompt's static model much computes each token by itself: products, norms, the MLP. Such a
block is compiled for NPUW_SPATIAL_NWAY tokens instead of a whole prompt's, and run tile by tile. So
its program is small, and tiles in which there is no token are left out (NPUW_SPATIAL_DYN): a prompt
of 20 tokens pays for one tile of a model that takes 1,024.

    isolate    which ops are blocks
    device     compiles and loads blocks
    tokens     which rows hold tokens: the model's own mask says it
    container  a tile's program as bytes, to be cached as a blob is
    program    a block in tiles, as if it were whole

What a block may have, and what a tile of it is, ``compiler_layer.partition`` knows
(``row_wise``, ``row_parts``, ``row_tiles``).

Source: the original's spatial execution; fact sheet npuw §b.2.
"""
