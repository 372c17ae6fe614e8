"""What the pipelines of texts may be told, with openvino_genai's names and defaults.

Source: openvino_genai.TextEmbeddingPipeline.Config, TextRerankPipeline.Config.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from genai_layer.errors import ConfigError

PaddingSide = Literal["left", "right"]

_Count = Annotated[int, Field(ge=1, strict=True)]


class PoolingType(Enum):
    """What of a text's hidden states becomes its embedding."""

    CLS = 0
    """That of the first token."""
    MEAN = 1
    """The mean over its tokens."""
    LAST_TOKEN = 2
    """That of the last token."""


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _explained(error) from None

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise _explained(error) from None


class TextConfig(_Config):
    """How texts become tokens.

    Raises:
        ConfigError: a parameter is unknown, or has a wrong value.
    """

    max_length: _Count | None = None
    """Tokens that are left of a longer text, special ones among them."""
    pad_to_max_length: bool | None = None
    """Whether shorter texts are padded to max_length, and not to the longest of a batch."""
    padding_side: PaddingSide | None = None
    """Where padding goes; the tokenizer's own side if nothing is said."""


class EmbeddingConfig(TextConfig):
    """Parameters of an embedding pipeline."""

    batch_size: _Count | None = None
    """How many texts each call has; any if nothing is said."""
    pooling_type: PoolingType = PoolingType.CLS
    """What of a text's hidden states becomes its embedding."""
    normalize: bool = True
    """Whether embeddings get the length 1."""
    query_instruction: str | None = None
    """What is put before queries."""
    embed_instruction: str | None = None
    """What is put before documents."""


class RerankConfig(TextConfig):
    """Parameters of a reranking pipeline."""

    top_n: Annotated[int, Field(ge=0, strict=True)] = 3
    """How many documents are given back, the best first."""


Config = TypeVar("Config", bound=TextConfig)


def settle(
    kind: type[Config], config: Config | None, properties: Mapping[str, Any]
) -> tuple[Config, dict[str, Any]]:
    """Give a pipeline's parameters, and what is left: properties of the runtime, upper case.

    Args:
        kind: of the parameters.
        config: the parameters, if they are not among the properties.
        properties: as the caller gives them.

    Raises:
        ConfigError: a parameter is wrong, or given twice.
    """
    own = {name: value for name, value in properties.items() if name in kind.model_fields}
    if config is not None and own:
        raise ConfigError(f"{', '.join(own)}: parameters are in the config; leave one out")
    rest = {name: value for name, value in properties.items() if name not in own}
    return kind(**own) if config is None else config.model_copy(), rest


def _explained(error: ValidationError) -> ConfigError:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return ConfigError(f"unknown parameter {name!r}")
    return ConfigError(f"{name} = {first['input']!r}: {first['msg']}")
