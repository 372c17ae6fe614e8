"""Embeddings of texts, images and videos in one space.

pipeline         EmbeddingPipeline; the module to read first
embed_call       arguments of one call
result           EmbedResult
text_model       models of texts alone
visual_model     models of the family Qwen3-VL
folder           sizes and settings of a Qwen3-VL's folder
frames           choice of a video's frames, and their times
encoder          from pixels to embeddings and features of the tokens of visuals
position_table   position embeddings of patches
prompts          from a text with visuals to token ids
hidden_states    from a prompt's embeddings to the embedding of the text
"""
