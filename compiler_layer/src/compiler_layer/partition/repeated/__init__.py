"""The block that a model repeats, layer after layer; begin with ``find``.

compare, find, names  equal blocks; the block that saves most; how op names count layers
fold, attributes      the model without the repetitions in between; what it records of them
cut                   prologue, block and epilogue as three parts
"""
