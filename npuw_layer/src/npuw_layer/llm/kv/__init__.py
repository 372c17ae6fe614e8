"""K and V caches of one conversation: memory layout, rows in use, copies, prefix cache.

Begin with ``kv_strategy``, the base; ``kv_cache`` and ``block_cache`` derive from it.
"""
