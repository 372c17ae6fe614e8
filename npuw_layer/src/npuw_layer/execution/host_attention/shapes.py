"""Inputs, outputs and sizes of an attention; this module loads no graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from npuw_layer.backends.protocols import TensorInfo

STORED_ELEMENT, SCALE_ELEMENT = "i8", "f16"
"""Element types of integer rows and of their scales (``llm.graph.stored_rows``)."""

_Size = Field(ge=1, le=1 << 24)


class AttentionShape(BaseModel):
    """Attention of new tokens to stored rows and to one another.

    Attributes:
        heads: heads of keys and values.
        group: query heads for each of them.
        tokens: new tokens.
        past: maximum number of stored rows.
        width: channels of a query and a key.
        value_width: channels of a value.
        element: element type of q, K and V.
        mask_element: element type of the mask: boolean, or a type of numbers to add.
        mask: dimensions of the mask, without that of positions.
        scale: factor of the scores.
        scaled: whether stored rows are integers of 8 bits, with a scale for each row of a head.
        floats: element type of stored rows that are floats of another type than K and V; else
            empty.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    heads: int = _Size
    group: int = _Size
    tokens: int = _Size
    past: int = _Size
    width: int = _Size
    value_width: int = _Size
    element: Literal["f32", "f16", "bf16"]
    mask_element: Literal["f32", "f16", "bf16", "boolean"]
    mask: tuple[int, ...] = Field(min_length=1, max_length=3)
    scale: float
    scaled: bool
    floats: Literal["", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"] = ""

    @property
    def stored_element(self) -> str:
        """Element type of stored rows."""
        return STORED_ELEMENT if self.scaled else self.floats or self.element

    @property
    def query_heads(self) -> int:
        """Query heads of all groups."""
        return self.heads * self.group

    @model_validator(mode="after")
    def _check_mask(self) -> Self:
        *outer, tokens = (1, 1, 1, *self.mask)[-3:]
        if outer not in ([1, 1], [1, self.query_heads]) or tokens not in (1, self.tokens):
            raise ValueError(f"mask {list(self.mask)} does not fit {self.query_heads} query heads")
        return self

    @property
    def mask_dims(self) -> tuple[int, int, int]:
        """Dimensions of a mask: key heads, their query heads, tokens; 1 if shared."""
        _, heads, tokens = (1, 1, *self.mask)[-3:]
        whole = heads == self.query_heads
        return (self.heads, self.group, tokens) if whole else (1, 1, tokens)


class RowInputs(BaseModel):
    """K or V: the inputs of stored rows, and of new ones.

    Attributes:
        stored: [1, rows, heads, width] of each part of the cache, token-major.
        scales: [1, rows, heads, 1] of each part, if rows have 8 bits; else empty.
        new: [1, heads, tokens, width].
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    stored: tuple[str, ...]
    scales: tuple[str, ...] = ()
    new: str


class CachedAttention(BaseModel):
    """softmax(q kᵀ · scale + mask) v over stored and new rows; tensors are given by name.

    Attributes:
        q: [1, query heads, tokens, width].
        k: keys.
        v: values.
        mask: [..., past + tokens].
        output: [1, query heads, tokens, width of V].
        parts: maximum number of stored rows in each part of the cache, in order; only a cache in
            blocks has several parts.
        shape: the sizes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    q: str
    k: RowInputs
    v: RowInputs
    mask: str
    output: str
    parts: tuple[Annotated[int, _Size], ...]
    shape: AttentionShape

    @model_validator(mode="after")
    def _check_pieces(self) -> Self:
        if sum(self.parts) != self.shape.past:
            raise ValueError(f"parts of {list(self.parts)} rows for a cache of {self.shape.past}")
        if {*map(len, self.by_kind)} != {len(self.parts)}:
            raise ValueError("K and V have different numbers of parts")
        return self

    @property
    def by_kind(self) -> Sequence[tuple[str, ...]]:
        """Inputs of the parts of K and of V, each followed by its scales, if any."""
        kinds = [self.k.stored, self.k.scales, self.v.stored, self.v.scales]
        return kinds if self.shape.scaled else kinds[::2]

    @property
    def stored(self) -> Mapping[str, int]:
        """Inputs with a row for each stored token, as dimension 1, and their parts' numbers."""
        return {name: part for names in self.by_kind for part, name in enumerate(names)}

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """All inputs."""
        x = self.shape
        query = (1, x.query_heads, x.tokens, x.width)
        mask = TensorInfo(self.mask, x.mask_element, (*x.mask, x.past + x.tokens))
        infos = [TensorInfo(self.q, x.element, query), mask]
        for rows, width in ((self.k, x.width), (self.v, x.value_width)):
            infos.append(TensorInfo(rows.new, x.element, (1, x.heads, x.tokens, width)))
            for name, count in zip(rows.stored, self.parts, strict=True):
                infos.append(TensorInfo(name, x.stored_element, (1, count, x.heads, width)))
            for name, count in zip(rows.scales, self.parts if rows.scales else (), strict=True):
                infos.append(TensorInfo(name, SCALE_ELEMENT, (1, count, x.heads, 1)))
        return infos

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The output."""
        x = self.shape
        return [TensorInfo(self.output, x.element, (1, x.query_heads, x.tokens, x.value_width))]
