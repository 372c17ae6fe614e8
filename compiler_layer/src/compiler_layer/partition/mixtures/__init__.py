"""Mixtures of experts in static graphs; begin with ``find``.

mixture, chained, stacked  the sum over experts, and its two forms in graphs
routing, rows, stack       which expert gets which tokens; rows and weights of one expert
expert, refusal            the graph of one expert; why a mixture is not supported

A static graph takes every token through every expert (``passes.dense_experts``). A mixture that is
found again can run the chosen experts alone.
"""
