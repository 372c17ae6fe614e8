"""Models that read texts and generate nothing (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK).

A decoder is read in chunks like a prompt; for that an embedding model, which is exported without a
KV cache, is given one. All others are read whole, by the smallest of several static models that a
text fits. What came out for the tokens of a text is put together again, row by row of a batch.

Begin with ``kind``: such models are split like language models (``kinds.llm``).
"""
