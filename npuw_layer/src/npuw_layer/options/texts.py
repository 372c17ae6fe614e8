"""Models that read texts and generate nothing: for embeddings, and for reranking."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class TextOptions(OptionGroup):
    """Texts that are read alone."""

    title: ClassVar[str] = "Text embedding and reranking"

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
        """Whether texts are read alone, and nothing is generated."""
        return self.text_embed or self.text_rerank
