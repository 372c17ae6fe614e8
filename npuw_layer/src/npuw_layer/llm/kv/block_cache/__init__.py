"""The K and V caches of one conversation in blocks of tokens, which come as they are needed.

A short conversation takes little memory. Static models read each block by inputs of its own, so
that nothing moves when a cache grows, or when a larger model goes on with it: inputs are bound
anew, those of blocks that are not there to a dummy.

layout      how variables lie in a block
pool        the blocks of a conversation
attachment  a program, and the blocks that its inputs are bound to
cache       the whole, as conversations use it

Source: fact sheet npuw §c.10, §a.3 step 15.
"""
