"""Parts of a decoder as ``ov`` ops, in the exporter's patterns; begin with ``layer``.

layer, attention, mlp, norm, linear  one layer, and its modules
cache, mask, rotary, ends            state; tables of positions; embedding and head
scope                                the shared graph, weights and names
"""
