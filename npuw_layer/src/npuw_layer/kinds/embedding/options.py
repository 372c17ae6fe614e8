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
    """The model gives hidden states of all tokens of a text (last_hidden_state), to be pooled by
    the caller. A decoder is read in chunks, as prompts are, if NPUW_LLM_PREFILL_CHUNK_SIZE is below
    NPUW_LLM_MAX_PROMPT_LEN; an encoder, whose tokens attend to later ones, is read whole. Texts
    may come in batches, whose rows are read one after the other."""
    text_rerank: bool = Field(False, alias="NPUW_TEXT_RERANK")
    """The model scores texts: a language model by the logits of the last token of each, a
    cross-encoder by its own logits. Nothing is generated, so that there are no generate models.
    Batches are read row by row; with NPUW_LLM_ENABLE_PREFIX_CACHING what the texts for a language
    model begin with alike is read once."""

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
        """Check that at most one of both is requested, and no options of conversations with it."""
        options = self.group(OptionValues)
        if self.text_embed and self.text_rerank:
            raise ValueError(
                "NPUW_TEXT_RERANK: a model embeds texts (NPUW_TEXT_EMBED) or ranks them"
            )
        if self.reads_texts and options.on_full != "ERROR":
            raise ValueError(
                f"NPUW_LLM_ON_FULL: {options.on_full} is for conversations that go on; texts "
                "that are read alone are refused if they are too long"
            )
        if self.text_embed and options.enable_prefix_caching:
            raise ValueError(
                "NPUW_LLM_ENABLE_PREFIX_CACHING: NPUW_TEXT_EMBED wants the hidden states of all "
                "tokens, and K and V alone are kept; leave it out"
            )
