"""Parameters of the pipelines of texts, with openvino_genai's names and defaults.

Source: openvino_genai.TextEmbeddingPipeline.Config, TextRerankPipeline.Config,
docs/reference/genai.md#embedding-and-reranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from genai_layer.errors import ConfigError
from genai_layer.named_enum import NamedEnum
from genai_layer.parameters import Parameters

PaddingSide = Literal["left", "right"]

_Count = Annotated[int, Field(ge=0)]


class PoolingType(NamedEnum):
    """Reduction of a text's hidden states to its embedding."""

    CLS = 0
    """Hidden state of the first token."""
    MEAN = 1
    """Mean over the text's tokens."""
    LAST_TOKEN = 2
    """Hidden state of the last token."""


class TextConfig(Parameters):
    """Parameters of tokenisation.

    Raises:
        ConfigError: a parameter is unknown, or has a wrong value.
    """

    max_length: _Count | None = None
    """Maximum number of tokens, special ones included; longer texts are truncated."""
    pad_to_max_length: bool | None = None
    """True to pad shorter texts to max_length, by default the tokenizer's; else to the longest."""
    padding_side: PaddingSide | None = None
    """Padding side; the default is the tokenizer's."""

    def validate(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (openvino_genai's name; pydantic's is deprecated)
        """Check the values.

        Raises:
            ConfigError: a length or the batch size is 0.
        """
        for name in ("max_length", "batch_size"):
            if getattr(self, name, None) == 0:
                raise ConfigError(f"{name} = 0: must be at least 1; set it to None for any")


class EmbeddingConfig(TextConfig):
    """Parameters of an embedding pipeline.

    A parameter that is set, even to its default, precedes the model's files (``sentence_files``).
    """

    batch_size: _Count | None = None
    """Required number of texts per call; by default any."""
    pooling_type: PoolingType = PoolingType.CLS
    """Reduction of a text's hidden states to its embedding."""
    normalize: bool = True
    """True to scale embeddings to length 1."""
    query_instruction: str | None = None
    """Prefix of queries."""
    embed_instruction: str | None = None
    """Prefix of documents."""


class RerankConfig(TextConfig):
    """Parameters of a reranking pipeline."""

    top_n: _Count = 3
    """Number of returned documents, the best first."""


Config = TypeVar("Config", bound=TextConfig)


def settle(
    kind: type[Config], config: Config | None, properties: Mapping[str, Any]
) -> tuple[Config, dict[str, Any]]:
    """Split properties into a pipeline's parameters, and properties of the runtime (upper case).

    Args:
        kind: class of the parameters.
        config: the parameters, if they are not among the properties.
        properties: the caller's keyword arguments.

    Raises:
        ConfigError: a parameter is invalid, or given twice.
    """
    own = {name: value for name, value in properties.items() if name in kind.model_fields}
    if config is not None and own:
        raise ConfigError(f"{', '.join(own)}: given in addition to a config; pass one of both")
    rest = {name: value for name, value in properties.items() if name not in own}
    chosen = kind(**own) if config is None else config.model_copy()
    chosen.validate()
    return chosen, rest
