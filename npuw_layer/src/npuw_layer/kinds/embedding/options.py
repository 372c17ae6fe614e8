"""Options of models that embed or rank texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OptionGroup
from npuw_layer.options.kinds import KindOptions
from npuw_layer.options.llm import GenerateOptions
from npuw_layer.options.model import OptionValues


class TextOptions(KindOptions):
    """Models that read independent texts."""

    title: ClassVar[str] = "Text embedding and reranking"
    flags: ClassVar[tuple[str, ...]] = ("text_embed", "text_rerank")
    follows: ClassVar[type[OptionGroup] | None] = GenerateOptions
    generates: ClassVar[bool] = False

    text_embed: bool = Field(False, alias="NPUW_TEXT_EMBED")
    """The model returns the hidden states of all tokens of a text (last_hidden_state), which the
    caller pools. A decoder reads a text in chunks, like a prompt, if NPUW_LLM_PREFILL_CHUNK_SIZE is
    below NPUW_LLM_MAX_PROMPT_LEN; an encoder, whose tokens attend to later ones, reads it whole.
    The rows of a batch are texts, which are read one after the other."""
    text_rerank: bool = Field(False, alias="NPUW_TEXT_RERANK")
    """The model scores texts: a language model returns the logits of each text's last token, a
    cross-encoder its own logits. Nothing is generated, so no generate models are compiled. The rows
    of a batch are read one after the other. With NPUW_LLM_ENABLE_PREFIX_CACHING a language model
    reads a common prefix of texts once."""

    @property
    def reads_texts(self) -> bool:
        """True if texts are read independently, and nothing is generated."""
        return self.text_embed or self.text_rerank

    def hidden_states_only(self) -> bool:
        """Return NPUW_TEXT_EMBED."""
        return self.text_embed

    def cache_key(self) -> Mapping[str, str]:
        """Return the choice between embeddings and logits, for models that read texts."""
        return {"NPUW_TEXT_EMBED": str(self.text_embed)} if self.reads_texts else {}

    def check(self) -> None:
        """Check that at most one task is requested, and no options of conversations."""
        options = self.group(OptionValues)
        if self.text_embed and self.text_rerank:
            raise ValueError(
                "NPUW_TEXT_RERANK: a model embeds or ranks texts; leave NPUW_TEXT_EMBED out"
            )
        if self.reads_texts and options.on_full != "ERROR":
            raise ValueError(
                f"NPUW_LLM_ON_FULL = {options.on_full}: the option is for conversations, not for "
                "independent texts; leave it out (texts that are too long are rejected)"
            )
        if self.text_embed and options.enable_prefix_caching:
            raise ValueError(
                "NPUW_LLM_ENABLE_PREFIX_CACHING: only K and V are cached, but NPUW_TEXT_EMBED "
                "returns the hidden states of all tokens; leave the option out"
            )
