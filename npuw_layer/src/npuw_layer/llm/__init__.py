"""One stateful language model as static models.

lengths        how long prompts, chunks and caches are
variants       capacities of the generate models, and which one to use
stages         which static models there are
names          what inputs and outputs are called
split          the stateful graph as a prefill and as generate graphs
split_slots    the stateful graph as generate graphs for several conversations at once
head           the LM head, cut off or left to compute what is asked for
vocabulary     which token ids there are
stage_graph    the graph of a stage, by these
programs       its program, compiled or from the cache
compiled       all static models of one LLM, ready to run
kv_rows        which token each row of the cache holds: integers only
kv_layout      how static models find their caches: type, order, pieces
kv_strategy    what conversations need of a cache
kv_cache       one in device memory, in one piece, and the copies
block_cache    one in blocks, which come as they are needed
submodel       one static model on a device, with its own tensors
history        what was said
conversation   prefill, then generate, on all of these
infer_request  a conversation as OpenVINO offers it
"""
