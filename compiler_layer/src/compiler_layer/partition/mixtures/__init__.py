"""Mixtures of experts in static graphs; begin with ``find``.

mixture, chained, stacked  the sum over experts, and its two forms in graphs
routing, rows              tokens of each expert; rows and weights of one expert
expert                     the graph of one expert

In a static graph every expert computes every token (``passes.dense_experts``). A recognised
mixture can run the chosen experts only.
"""
