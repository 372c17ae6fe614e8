"""Mixtures of experts in static graphs: where they are, and what one expert computes.

A static graph lets every token go through every expert (``passes.dense_experts``). Here what it
computes is found again, so that somebody who knows the router's choice runs only what was chosen.
"""
