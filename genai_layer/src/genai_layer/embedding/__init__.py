"""Embeddings of texts, images and videos in one space.

pipeline         EmbeddingPipeline; the module to read first
models           arguments of one call; models of texts alone, and of the family Qwen3-VL
folder           sizes and settings of a Qwen3-VL's folder; choice of a video's frames
encoder          from pixels to embeddings and features of the tokens of visuals
prompts          from a text with visuals to token ids
"""
