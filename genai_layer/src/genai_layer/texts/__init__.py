"""Pipelines that read texts: for embeddings, and for ranking documents."""
