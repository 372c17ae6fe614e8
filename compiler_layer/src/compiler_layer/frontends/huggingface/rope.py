"""Frequencies of rotary position embeddings, by ``rope_type``.

Source: transformers' ``modeling_rope_utils``; computed in f32 as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler_layer.elements import Array
from compiler_layer.errors import BadModel, UnsupportedModel
from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Rotary

_MAX_WIDTH = 1 << 16
"""Maximum number of channels of a head."""


@dataclass(frozen=True, slots=True)
class _Request:
    config: Config
    scaling: Config
    """JSON object with the scaling."""
    theta: float
    width: int

    def powers(self) -> Array:
        """Return the unscaled positions per radian: theta to the power of 0, 2/width and so on."""
        exponents = np.arange(0, self.width, 2, dtype=np.float32) / np.float32(self.width)
        return (np.float32(self.theta) ** exponents).astype(np.float32)

    def plain(self) -> Array:
        """Return the frequencies without scaling."""
        return np.float32(1) / self.powers()

    def by_channel(self, key: str) -> tuple[float, ...]:
        """Return the frequencies scaled by a list of factors, one for each channel."""
        factors = np.array(self.scaling.numbers(key, self.width // 2), np.float32)
        return _floats(np.float32(1) / (factors * self.powers()))

    def factor(self) -> float:
        """Return the factor by which the context is extended."""
        if not self.scaling.has("factor"):
            kind = _rope_type(self.scaling)
            raise UnsupportedModel(
                f"{self.config.path}: rope_type {kind!r} without a factor is not supported"
            )
        return self.scaling.number("factor")


def read_rotary(config: Config, head_dim: int, theta: float, share: float = 1.0) -> Rotary:
    """Read the rotary embedding that a config describes.

    Args:
        config: with ``rope_scaling``, or since transformers 5 ``rope_parameters``.
        head_dim: the channels of a head.
        theta: the base, unless ``rope_parameters`` set another.
        share: the fraction of channels that is rotated.

    Raises:
        BadModel: a value is missing or malformed.
        UnsupportedModel: the kind is not supported, e.g. one that depends on the text's length.
    """
    scaling = config.section("rope_parameters") or config.section("rope_scaling")
    return scaled_rotary(config, scaling, head_dim, theta, share)


def scaled_rotary(
    config: Config, scaling: Config | None, head_dim: int, theta: float, share: float = 1.0
) -> Rotary:
    """Read a rotary embedding; ``scaling`` is the object with the scaling, or None for none."""
    scaling = scaling or Config(config.path, {})
    theta = scaling.number("rope_theta", theta)
    width = int(head_dim * scaling.number("partial_rotary_factor", share))
    if width > _MAX_WIDTH:
        raise BadModel(config.path, f"{width} channels of a head are too many to rotate")
    if width % 2 or not 0 < width <= head_dim:
        raise BadModel(config.path, f"{width} of {head_dim} channels cannot be rotated in pairs")
    if theta <= 1:
        raise scaling.bad("rope_theta", "above 1")
    kind = _rope_type(scaling)
    compute = _KINDS.get(kind) if isinstance(kind, str) else None
    if compute is None:
        raise UnsupportedModel(f"{config.path}: rope_type {kind!r} is not supported")
    return compute(_Request(config, scaling, theta, width))


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(each) for each in values.astype(np.float32))


def _rope_type(scaling: Config) -> Any:
    return scaling.values.get("rope_type", scaling.values.get("type", "default"))


def _default(request: _Request) -> Rotary:
    return Rotary(_floats(request.plain()))


def _linear(request: _Request) -> Rotary:
    """Divide all frequencies by the factor."""
    return Rotary(_floats(request.plain() / np.float32(request.factor())))


def _llama3(request: _Request) -> Rotary:
    """Divide the frequencies of waves longer than the original context; keep the others."""
    factor, scaling = request.factor(), request.scaling
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    context = scaling.positive("original_max_position_embeddings")
    if low >= high:
        raise scaling.bad("high_freq_factor", "above low_freq_factor")
    plain = request.plain()
    waves = np.float32(2 * math.pi) / plain
    stretched = plain / np.float32(factor)
    smooth = (np.float32(context) / waves - np.float32(low)) / np.float32(high - low)
    between = (1 - smooth) * stretched + smooth * plain
    result = np.where(waves > context / low, stretched, plain)
    medium = (waves >= context / high) & (waves <= context / low)
    return Rotary(_floats(np.where(medium, between, result)))


def _yarn(request: _Request) -> Rotary:
    """Keep the frequencies of channels that rotate often, and divide the others."""
    factor, scaling, width = request.factor(), request.scaling, request.width
    context = scaling.optional_positive("original_max_position_embeddings")
    if context is None:
        context = request.config.positive("max_position_embeddings")

    def channel(rotations: float) -> float:
        """Return the channel with that number of rotations within the original context."""
        turns = context / (rotations * 2 * math.pi)
        return width * math.log(turns) / (2 * math.log(request.theta))

    low = channel(scaling.number("beta_fast", 32))
    high = channel(scaling.number("beta_slow", 1))
    if scaling.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    if low == high:
        high += 0.001
    ramp = (np.arange(width // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low)
    keep = 1 - np.clip(ramp, 0, 1)
    powers = request.powers()
    stretched = np.float32(1) / (np.float32(factor) * powers)
    frequencies = stretched * (1 - keep) + np.float32(1) / powers * keep
    return Rotary(_floats(frequencies), _yarn_factor(scaling, factor))


def _yarn_factor(scaling: Config, factor: float) -> float:
    given = scaling.optional_number("attention_factor")
    if given is not None:
        return given

    def mscale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    if scaling.values.get("mscale") and scaling.values.get("mscale_all_dim"):
        return mscale(scaling.number("mscale")) / mscale(scaling.number("mscale_all_dim"))
    return mscale(1)


def _longrope(request: _Request) -> Rotary:
    """Scale each channel by its own factor, and by another one in texts longer than the context."""
    config = request.config
    short = request.by_channel("short_factor")
    longest = config.positive("max_position_embeddings")
    original = config.optional_positive("original_max_position_embeddings")
    factor = longest / original if original is not None else request.factor()
    context = longest if original is None else original
    given = request.scaling.optional_number("attention_factor")
    if given is None:
        given = math.sqrt(1 + math.log(factor) / math.log(context)) if factor > 1 < context else 1.0
    return Rotary(short, given, request.by_channel("long_factor"), context)


_KINDS: dict[str, Callable[[_Request], Rotary]] = {
    "default": _default,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,
}
