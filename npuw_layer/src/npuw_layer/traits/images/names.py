"""Names of the inputs of vision-language models other than embeddings."""

from __future__ import annotations

TOKEN_TYPES = "token_type_ids"
"""i64 [1, n]: 1 at the tokens of an image, which attend to one another in Gemma 3."""

VISUAL_MASKS, VISUAL_EMBEDS = "visual_pos_masks", "deepstack_visual_embeds"
"""boolean [1, n], true at tokens of images; and f32 [levels, tokens of images, width], which Qwen 3
VL adds to their hidden states after the first layers (DeepStack)."""

PER_LAYER = "per_layer_inputs"
"""f32 [1, n, layers, width]: embeddings of a token for each layer of Gemma 3n and Gemma 4."""
