"""Building blocks of graph rewrites, for passes and for other packages; begin with ``match``.

match, replace, dataflow           questions about values; small edits; ops in the order of data
dead_code, constants, shapes       remove unused ops; fold constants; carry shapes through
state, dequantize                  variables as inputs and outputs; compressed weights
grouped_attention, sliding         ops that a GroupQueryAttention, or a filter, becomes
garbage                            Python's cycle collector, paused while a model is compiled
"""
