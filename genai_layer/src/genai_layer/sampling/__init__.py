"""Sampling: from logits to the next token.

``processors`` change logits, ``candidates`` filters them and draws, by the ``running_sums`` of their
weights; ``sampler``, the module to read first, orders these steps.
"""
