"""Runs of a mixture only the experts that tokens chose (NPUW_LLM_GENERATE_MOE_HINT = HOST_ROUTED).

Of a model that is one mixture a single expert is compiled, for a few rows at a time. The host reads
which experts the router chose, brings the rows of each together, runs it on them and adds up what
comes out. So a token costs the weights of the experts that it chose, not those of all.

``compiler_layer.partition.mixtures`` finds mixtures, and the graph of one expert.
"""
