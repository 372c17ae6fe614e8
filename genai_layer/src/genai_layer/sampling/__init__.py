"""Sampling: from logits to the next token.

``processors`` change logits, ``candidates`` filters them and draws, with sums of ``running_sums``;
``sampler``, the module to read first, orders these steps.
"""
