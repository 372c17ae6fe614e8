"""Names of the inputs that models which see take beside embeddings."""

from __future__ import annotations

TOKEN_TYPES = "token_type_ids"
"""i64 [1, n]: 1 at the tokens of an image, among which Gemma 3 attends both ways."""

VISUAL_MASKS, VISUAL_EMBEDS = "visual_pos_masks", "deepstack_visual_embeds"
"""boolean [1, n], which tokens are of images, and f32 [levels, those, width]: what Qwen 3 VL adds
to their hidden states behind the first layers (DeepStack)."""

PER_LAYER = "per_layer_inputs"
"""f32 [1, n, layers, width]: what each layer of Gemma 3n and Gemma 4 takes of a token."""
