"""One stateful language model as static models.

lengths        how long prompts, chunks and caches are
variants       capacities of the generate models, and which one to use
stages         which static models there are
names          what inputs and outputs are called
graph          the passes that make the static graph of a stage; begin with graph.pipeline
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
