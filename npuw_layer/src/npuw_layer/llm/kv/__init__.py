"""K and V of one conversation: layout in memory, rows in use, copies, prefix cache.

Begin with ``kv_strategy``, the protocol; ``kv_cache`` and ``block_cache`` implement it.
"""
