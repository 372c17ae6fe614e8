"""Parts of a decoder as ``ov`` ops, in the exporter's patterns; begin with ``layer``.

layer, attention  one layer, with its feed-forward block, its attention and its KV cache
modules           the shared graph, weights and names; linear projections and norms
mask, rotary      tables of positions
"""
