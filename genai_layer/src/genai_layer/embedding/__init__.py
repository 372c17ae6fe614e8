"""Embeddings of texts, images and videos in one space.

pipeline         EmbeddingPipeline; the module to read first
text_model       arguments of one call; models of texts alone
visual_model     models of the family Qwen3-VL, from a text with visuals to the embedding
folder           sizes and settings of a Qwen3-VL's folder; choice of a video's frames
encoder          from pixels to embeddings and features of the tokens of visuals
prompts          from a text with visuals to token ids
"""
