"""Kinds of models, one folder each: what is no language model, or is read differently.

Begin with ``routing``.
"""
