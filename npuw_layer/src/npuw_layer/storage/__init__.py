"""Files: the blob cache, exported models and encryption.

Begin with ``container``, the format of cache entries (``cache``) and of exported models
(``model_blob``).
"""
