"""K and V caches of one conversation in blocks of tokens, allocated on demand.

A short conversation takes little memory. Static models have a separate input for each block. So no
rows move when a cache grows or a larger model takes over: inputs are rebound, those of missing
blocks to a dummy.

layout      layout of variables in a block, and the blocks of a conversation
attachment  bindings of a program to blocks
cache       the cache that conversations use

Source: docs/reference/npuw.md#block-cache, docs/reference/npuw.md#block-inputs.
"""
