"""Sampling: from logits to the next token.

``processors`` change logits, ``probabilities`` filter and draw; ``sampler``, the module to read
first, orders these steps.
"""
