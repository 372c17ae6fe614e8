"""Repeated block of a model, one layer after another; begin with ``find``.

compare, find         equal blocks; the block that saves most
fold, attributes      the model without its middle repetitions; the record of them
cut                   prologue, block and epilogue as three parts
"""
