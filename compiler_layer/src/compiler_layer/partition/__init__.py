"""Cuts a model into parts, each a model of its own; begin with ``parts``.

parts, enclosed       cut around chosen ops; ops that lie between the ops of one part
even, row_parts       choose ops: parts of equal size; parts of row-wise ops
row_wise, row_tiles   ops that compute each row by itself; a part for fewer rows
functions             equal parts, as calls of one function
repeated/, mixtures/  the block that a model repeats; mixtures of experts
compiled              compiled parts and the names of their ports; imports no graphs
"""
