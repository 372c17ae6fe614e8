"""Description of a decoder-only language model, independent of its family's names.

A family describes its models in these terms (``families``); the blocks write them as a graph
(``blocks``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class NormKind(Enum):
    """Kind of normalization."""

    RMS = "RMSNorm"
    LAYER = "LayerNorm"


@dataclass(frozen=True, slots=True)
class Norm:
    """Normalization over channels, with learned weights."""

    kind: NormKind
    epsilon: float
    offset: float = 0.0
    """Addend of the stored weights: Gemma stores w for 1 + w."""
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary position embedding of the first channels of a head."""

    frequencies: tuple[float, ...]
    """Radians per position, f32, for each pair of channels."""
    factor: float = 1.0
    """Factor of cosines and sines."""
    long: tuple[float, ...] = ()
    """Frequencies for texts longer than ``context``, NaN if undefined; empty if the others always
    apply."""
    context: int = 0
    """Maximum number of tokens that ``frequencies`` apply to."""

    @property
    def width(self) -> int:
        """Number of rotated channels."""
        return 2 * len(self.frequencies)


class Fusion(Enum):
    """Storage of the projections to queries, keys and values in a checkpoint."""

    NONE = "three matrices"
    WHOLE = "one: all queries, all keys, all values"
    BY_HEAD = "one: for each head its query, key and value"


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped-query attention."""

    heads: int
    key_heads: int
    head_dim: int
    scale: float
    """Factor of the scores."""
    fusion: Fusion = Fusion.NONE
    bias: bool = False
    """True if the projections to queries, keys and values have a bias."""
    output_bias: bool = False
    head_norm: Norm | None = None
    """Norm of each query and key head, before the rotary embedding."""
    norm_jointly: bool = False
    """True if that norm covers the channels of all heads together."""
    softcap: float | None = None
    """Soft cap of the scores s: cap · tanh(s / cap)."""


class Activation(Enum):
    """Activation function of a feed-forward block."""

    SILU = "x · sigmoid(x)"
    GELU = "x · Φ(x)"
    GELU_TANH = "x · Φ(x) by its tanh approximation"


ACTIVATIONS = {
    "silu": Activation.SILU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
}
"""Activation functions by their names in configs."""


@dataclass(frozen=True, slots=True)
class Mlp:
    """Feed-forward block: down(f(up(x))), or if gated down(f(gate(x)) · up(x))."""

    inner_size: int
    activation: Activation
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """Properties that may differ between layers."""

    window: int | None
    """Number of tokens that a token attends to, including itself; None if all."""
    rotary: Rotary | None
    """None if the layer has no rotary embedding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleNames:
    """Names of the modules in a family's checkpoints.

    Names of a layer's modules omit the layer's own name. A norm of None does not exist.
    """

    embedding: str
    positions: str | None = None
    layer: str
    """Name of a layer, with ``{}`` for its number."""
    attention_norm: str | None
    qkv: tuple[str, ...]
    """Three names, or one if the projections are fused."""
    q_norm: str = ""
    k_norm: str = ""
    output: str
    attention_output_norm: str | None = None
    mlp_norm: str | None
    up: tuple[str, ...]
    """Gate and up of a gated block, or one name if they are fused; otherwise one name."""
    down: str
    mlp_output_norm: str | None = None
    norm: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """Model from token ids to logits.

    A layer computes h = x + s · attention(x); y = h + s · mlp(h), where each block may have a norm
    before and one after; a parallel layer computes x + s · attention(x) + s · mlp(x).
    """

    vocab_size: int
    hidden_size: int
    layers: tuple[Layer, ...]
    norm: Norm
    attention: Attention
    mlp: Mlp
    names: ModuleNames
    positions: int = 0
    """Number of learned position embeddings; 0 if the model has none."""
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    parallel: bool = False
    input_major: bool = False
    """True if layers store matrices as [in, out] instead of [out, in]."""
    tied_head: bool
    """True if the LM head shares the embedding's matrix."""
    stored_head_precedes: bool = False
    """True if an LM head in the checkpoint precedes a tied one: transformers 5 reads it, 4 does
    not."""
    logit_scale: float = 1.0
    logit_softcap: float | None = None
