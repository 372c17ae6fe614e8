"""The cache of programs (CACHE_DIR), and digests of a model's files.

Begin with ``blob_cache``; ``key`` has what a program depends on, ``model_digest`` and
``known_files`` hash files once, ``lock`` and ``replace`` keep processes from each other's entries.
"""
