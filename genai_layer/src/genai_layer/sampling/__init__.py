"""Sampling: from logits to the next token.

``processors`` change logits, ``probabilities`` filter and draw. Begin with ``sampler``, which puts
the steps in order.
"""
