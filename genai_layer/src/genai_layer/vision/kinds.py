"""Kinds of visuals in a prompt: images and videos.

Source: docs/reference/genai.md#tags-of-images, docs/reference/genai.md#videos.
"""

from __future__ import annotations

from dataclasses import dataclass

_START, _END = "<|vision_start|>", "<|vision_end|>"


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of visuals."""

    name: str
    """Name in universal tags."""
    pad: str
    """Token at the places of visuals of this kind."""
    mark: str
    """Character that stands for a place until the chat template is rendered; Unicode assigns it to
    nothing."""

    @property
    def own_tag(self) -> str:
        """The model's own tag."""
        return _START + self.pad + _END

    def universal_tag(self, number: int | str) -> str:
        """Return the tag of a visual of a conversation."""
        return f"<ov_genai_{self.name}_{number}>"

    def tokens(self, count: int) -> list[str]:
        """Return the tokens of a visual that has ``count`` embeddings."""
        return [_START, *[self.pad] * count, _END]


IMAGE = Kind("image", "<|image_pad|>", "\U0010fffc")
VIDEO = Kind("video", "<|video_pad|>", "\U0010fffd")
KINDS = IMAGE, VIDEO
