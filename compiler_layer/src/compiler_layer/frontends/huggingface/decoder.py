"""What a decoder-only language model consists of, whatever its family calls the parts.

A family describes its models in these terms (``families``), the blocks write them as a graph
(``blocks``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class NormKind(Enum):
    """How rows are normalised."""

    RMS = "RMSNorm"
    LAYER = "LayerNorm"


@dataclass(frozen=True, slots=True)
class Norm:
    """A normalisation over channels, with learned weights."""

    kind: NormKind
    epsilon: float
    offset: float = 0.0
    """What is added to the stored weights: Gemma's are those of 1 + w."""
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary position embedding of the first channels of a head."""

    frequencies: tuple[float, ...]
    """Radians per position, f32, for each pair of channels."""
    factor: float = 1.0
    """What cosines and sines are multiplied with."""
    long: tuple[float, ...] = ()
    """The frequencies in place of the others where a text is longer than ``context``; if any."""
    context: int = 0
    """Tokens that the others are for."""

    @property
    def width(self) -> int:
        """Channels that are rotated."""
        return 2 * len(self.frequencies)


class Fusion(Enum):
    """How a checkpoint stores the projections to queries, keys and values."""

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
    """What scores are multiplied with."""
    fusion: Fusion = Fusion.NONE
    bias: bool = False
    """Of the projections to queries, keys and values."""
    output_bias: bool = False
    head_norm: Norm | None = None
    """Of each query and key head, before positions are embedded."""
    norm_jointly: bool = False
    """Whether that norm is over the channels of all heads at once."""
    softcap: float | None = None
    """Scores s become cap · tanh(s / cap)."""


class Activation(Enum):
    """The nonlinearity of a feed-forward block."""

    SILU = "x · sigmoid(x)"
    GELU = "x · Φ(x)"
    GELU_TANH = "x · Φ(x) by its tanh approximation"


ACTIVATIONS = {
    "silu": Activation.SILU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
}
"""The names that configs give to activations."""


@dataclass(frozen=True, slots=True)
class Mlp:
    """A feed-forward block: down(f(up(x))), or if gated down(f(gate(x)) · up(x))."""

    inner_size: int
    activation: Activation
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """What differs from layer to layer."""

    window: int | None
    """How many tokens a token sees, itself among them; None if all."""
    rotary: Rotary | None
    """None if positions are not embedded here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the modules are called in a family's checkpoints.

    Those of a layer come without the layer's own name. A norm of None does not exist.
    """

    embedding: str
    positions: str | None = None
    layer: str
    """With ``{}`` for its number."""
    attention_norm: str | None
    qkv: tuple[str, ...]
    """Three, or one if they are fused."""
    q_norm: str = ""
    k_norm: str = ""
    output: str
    attention_output_norm: str | None = None
    mlp_norm: str | None
    up: tuple[str, ...]
    """Of a gated block gate and up, or one if they are fused; else one."""
    down: str
    mlp_output_norm: str | None = None
    norm: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A model from token ids to logits.

    A layer is h = x + s · attention(x); y = h + s · mlp(h), where each block may have a norm in
    front and one behind; parallel, it is x + s · attention(x) + s · mlp(x).
    """

    vocab_size: int
    hidden_size: int
    layers: tuple[Layer, ...]
    norm: Norm
    attention: Attention
    mlp: Mlp
    names: Names
    positions: int = 0
    """Learned position embeddings; 0 if there are none."""
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    parallel: bool = False
    input_major: bool = False
    """Whether matrices of layers are stored [in, out], not [out, in]."""
    tied_head: bool
    """Whether the embedding is the head's matrix, too."""
    logit_scale: float = 1.0
    logit_softcap: float | None = None
