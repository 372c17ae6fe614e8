"""What the host and static models of texts agree on, besides ``llm.names``."""

from __future__ import annotations

PADDING = -1
"""The host's id of what follows a text in a static model that reads it whole."""
