"""Partition of a model into parts, each a complete model; begin with ``parts``.

parts                 cuts around chosen ops, with the ops that they enclose
even, row_parts       choices of ops: parts of equal size; parts of row-wise ops
row_wise              row-wise ops; a part for fewer rows
functions             equal parts, as calls of one function
repeated/, mixtures/  the repeated block of a model; mixtures of experts
compiled              compiled parts and the names of their ports; no dependency on graphs
"""
