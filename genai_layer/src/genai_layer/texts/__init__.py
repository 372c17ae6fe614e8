"""Pipelines for embeddings of texts, and for ranking documents."""
