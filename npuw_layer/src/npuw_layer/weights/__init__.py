"""Weights: the bank that holds each weight once, and the arena that processes share.

Begin with ``bank``; ``sharing`` has the arena.
"""
