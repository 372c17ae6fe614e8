"""Weights: the bank that holds each once, files of converted ones, sharing across processes.

Begin with ``bank``.
"""
