"""Vision-language models of the family Qwen2-VL.

pipeline         VLMPipeline; the module to read first
folder           files and sizes of a model folder
prompt_tags      texts with tags of images
conversation     a chat's messages with their images
image, resize, patches   from pixels to a matrix of patches
encoder          from patches to embeddings of image tokens
text_embeddings  from token ids to embeddings
embedded_prompt  inputs of the language model: embeddings and positions
shaped_model     models without state, compiled for shapes
"""
