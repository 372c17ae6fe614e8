"""What inputs and outputs of models that read texts are called, besides ``llm.names``."""

from __future__ import annotations

HIDDEN = "last_hidden_state"
"""The output f32 [batch, tokens, channels] of an embedding model."""

PADDING = -1
"""The host's id of what follows a text in a static model that reads it whole."""
