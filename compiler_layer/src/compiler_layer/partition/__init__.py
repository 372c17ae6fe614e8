"""Partition of a model into parts, each a complete model; begin with ``parts``.

parts, enclosed       cuts around chosen ops; ops enclosed by the ops of one part
even, row_parts       choices of ops: parts of equal size; parts of row-wise ops
row_wise, row_tiles   row-wise ops; a part for fewer rows
functions             equal parts, as calls of one function
repeated/, mixtures/  the repeated block of a model; mixtures of experts
compiled              compiled parts and the names of their ports; no dependency on graphs
"""
