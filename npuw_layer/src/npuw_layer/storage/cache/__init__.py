"""The cache of programs (CACHE_DIR), and digests of a model's files.

Begin with ``blob_cache``. ``key`` lists a program's dependencies; ``model_digest`` and
``known_files`` hash files once; ``lock`` and ``replace`` protect entries from other processes.
"""
