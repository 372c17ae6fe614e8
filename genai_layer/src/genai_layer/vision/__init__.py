"""Vision-language models of the family Qwen2-VL.

pipeline         VLMPipeline; the module to read first
arguments, generate_call   arguments of the pipeline and of one call
model_source     models of a folder, or in memory
folder           sizes and settings of a model folder
kinds            images and videos, both called visuals
prompt_tags      texts with tags of visuals
conversation     a chat's messages with their visuals
prompts          from chats and texts to token ids
tensors, image, video, resize, patches   from pixels to matrices of patches
encoder          from patches to embeddings of the tokens of visuals
text_embeddings  from token ids to embeddings
embedded_prompt  inputs of the language model: embeddings and positions
shaped_model     models without state, compiled for shapes
generation       parameters, measurements and results of one call
"""
