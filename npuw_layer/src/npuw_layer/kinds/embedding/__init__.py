"""Models that read texts and generate nothing (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK).

A decoder is read in chunks like a prompt; an embedding model, which is exported without a KV
cache, is rebuilt with one. Other models are read whole, by the smallest of several static models
that holds the text. The outputs of a text's tokens are concatenated, and texts form the batch rows.

Begin with ``kind``: such models are split like language models (``kinds.llm``).
"""
