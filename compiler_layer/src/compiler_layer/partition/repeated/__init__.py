"""Repeated block of a model, one layer after another; begin with ``find``.

compare, find, names  equal blocks; the block that saves most; the layer counter in op names
fold, attributes      the model without its middle repetitions; the record of them
cut                   prologue, block and epilogue as three parts
"""
