"""What the host and static models of texts agree on, besides ``llm.names``."""

from __future__ import annotations

PADDING = -1
"""The host's id of what follows a text in a static model that reads it whole."""

TOKEN_TYPES = "token_type_ids"
"""The input i64 [texts, n]: 0 and 1 in the first and in the second text of a pair."""
