"""Row-wise ops in token tiles (NPUW_SPATIAL).

Much of a prompt's static model computes each token by itself: matmuls, norms, the MLP. Such a block
is compiled for NPUW_SPATIAL_NWAY tokens instead of a complete prompt, and runs tile by tile. Its
program is small, and tiles without tokens are skipped (NPUW_SPATIAL_DYN): a prompt of 20 tokens
costs one tile of a model for 1,024 tokens.

    device     compilation and loading of blocks
    tokens     rows that hold tokens, according to the model's own mask
    container  a tile's program as bytes, which a cache stores like a blob
    program    a tiled block with the ports of the complete block

``execution.partition.rules`` isolates the blocks. ``compiler_layer.partition`` defines a
block's ops and its tiles (``row_wise``, ``row_parts``).

Source: NPUW's spatial execution; docs/reference/npuw.md#further-options.
"""
