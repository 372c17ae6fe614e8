"""Mixtures that run only the experts that tokens chose (NPUW_LLM_GENERATE_MOE_HINT = HOST_ROUTED).

If a model consists of one mixture, a single expert is compiled, for a few rows at a time. The host
reads the router's choice, gathers the rows of each expert, runs the expert on them and adds up the
results. So a token reads the weights of its chosen experts only.

``compiler_layer.partition.mixtures`` finds mixtures, and the graph of one expert.
"""
