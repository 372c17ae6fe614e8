"""Building blocks of graph rewrites, for passes and for other packages; begin with ``match``.

match, replace, dataflow           queries about values; small edits; ops in data flow order
dead_code, constants, shapes       remove unused ops; fold constants; propagate shapes
state, dequantize                  variables as inputs and outputs; compressed weights
nibbles                            4-bit values in bytes, where the device cannot address them
grouped_attention, sliding         decompositions of GroupQueryAttention and of convolutions
graph_pass                         base classes of passes
garbage                            Python's cycle collector, paused during a compilation
"""
