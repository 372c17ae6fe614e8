"""Vision-language models of the family Qwen2-VL.

pipeline         VLMPipeline; the module to read first
generate_call    arguments of one call
model_source     arguments of the pipeline; models of a folder, or in memory; their properties
folder           sizes and settings of a model folder
prompt_tags      texts with tags of images and videos, both called visuals
prompts          a chat's messages with their visuals; from chats and texts to token ids
visuals          images and videos that callers pass
patches          from pixels to matrices of patches
prompt_embedder  embeddings of images, videos and token ids
encoder          from patches to embeddings of the tokens of visuals
embedded_prompt  inputs of the language model: embeddings and positions
shaped_model     models without state, compiled for shapes; from token ids to embeddings
results          results and measurements of one call
"""
