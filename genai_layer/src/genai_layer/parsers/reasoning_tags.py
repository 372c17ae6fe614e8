"""Options of the parsers of reasoning, for complete and for streamed texts."""

from __future__ import annotations

from genai_layer.errors import ConfigError


class ReasoningTags:
    """Tags around reasoning, and the use of a text's content.

    Args:
        expect_open_tag: whether the model writes the open tag; else the prompt ends with it, and
            the text begins with reasoning.
        keep_original_content: whether "content" keeps tags and reasoning.
        open_tag: begin of the reasoning.
        close_tag: end of the reasoning.

    Raises:
        ConfigError: a tag is not a text.
    """

    def __init__(
        self,
        expect_open_tag: bool = True,
        keep_original_content: bool = True,
        open_tag: str = "<think>",
        close_tag: str = "</think>",
    ) -> None:
        for name, tag in (("open_tag", open_tag), ("close_tag", close_tag)):
            if not isinstance(tag, str):  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
                raise ConfigError(f"{name} = {tag!r}: must be a text")
        self._expect_open_tag = expect_open_tag
        self._keep = keep_original_content
        self._open_tag = open_tag
        self._close_tag = close_tag

    def _split_at_close_tag(self, text: str) -> tuple[str, str] | None:
        """Return the text before and after the first close tag; None without a close tag."""
        at = text.find(self._close_tag)
        return None if at < 0 else (text[:at], text[at + len(self._close_tag) :])
