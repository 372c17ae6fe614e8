"""One stateful language model as static models.

lengths        how long prompts, chunks and caches are
variants       capacities of the generate models, and which one to use
names          what inputs and outputs are called
split          the stateful graph as a prefill and as generate graphs
split_slots    the stateful graph as generate graphs for several conversations at once
kv_plan        which rows of the cache go where: integers only
kv_cache       the caches in device memory, and the copies
submodel       one static model on a device, with its own tensors
compiled       all static models of one LLM, compiled or from the cache
infer_request  a conversation: prefill, then generate
"""
