"""Sampling: from logits to the next token.

``processors`` change logits, ``candidates`` filter them, ``draw`` chooses; ``sampler``, the module
to read first, orders these steps.
"""
