"""Frequencies of rotary position embeddings, by ``rope_type``.

Source: transformers' ``modeling_rope_utils``; computed in f32 as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from compiler_layer.elements import Array
from compiler_layer.errors import BadModel
from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Rotary
from compiler_layer.frontends.huggingface.rope_values import RopeValues

_MAX_WIDTH = 1 << 16
"""Maximum number of channels of a head."""


def scaled_rotary(values: RopeValues, head_dim: int) -> Rotary:
    """Compute a rotary embedding for heads of ``head_dim`` channels.

    Raises:
        BadModel: a value is missing or malformed.
        UnsupportedModel: the kind is not supported, e.g. one that depends on the text's length.
    """
    path, width = values.config.path, int(head_dim * values.share())
    if width > _MAX_WIDTH:
        raise BadModel(path, f"{width} channels of a head are too many to rotate")
    if width % 2 or not 0 < width <= head_dim:
        raise BadModel(path, f"{width} of {head_dim} channels cannot be rotated in pairs")
    compute = _KINDS.get(values.kind)
    if compute is None:
        raise values.unsupported(repr(values.kind))
    return compute(values, width)


def _powers(values: RopeValues, width: int) -> Array:
    """Return the unscaled positions per radian: theta to the power of 0, 2/width and so on."""
    exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    return (np.float32(values.theta()) ** exponents).astype(np.float32)


def _plain(values: RopeValues, width: int) -> Array:
    """Return the frequencies without scaling."""
    return np.float32(1) / _powers(values, width)


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(each) for each in values.astype(np.float32))


def _default(values: RopeValues, width: int) -> Rotary:
    return Rotary(_floats(_plain(values, width)))


def _linear(values: RopeValues, width: int) -> Rotary:
    """Divide all frequencies by the factor."""
    return Rotary(_floats(_plain(values, width) / np.float32(values.factor())))


def _llama3(values: RopeValues, width: int) -> Rotary:
    """Divide the frequencies of waves longer than the original context; keep the others."""
    factor, scaling, context = values.factor(), values.scaling, values.original()
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    if low >= high:
        raise scaling.bad("high_freq_factor", "above low_freq_factor")
    plain = _plain(values, width)
    waves = np.float32(2 * math.pi) / plain
    stretched = plain / np.float32(factor)
    smooth = (np.float32(context) / waves - np.float32(low)) / np.float32(high - low)
    between = (1 - smooth) * stretched + smooth * plain
    result = np.where(waves > context / low, stretched, plain)
    medium = (waves >= context / high) & (waves <= context / low)
    return Rotary(_floats(np.where(medium, between, result)))


def _yarn(values: RopeValues, width: int) -> Rotary:
    """Keep the frequencies of channels that rotate often, and divide the others."""
    scaling, context, theta = values.scaling, values.original(), values.theta()
    factor = values.extension() if "factor" in scaling.values else values.factor()

    def channel(rotations: float) -> float:
        """Return the channel with that number of rotations within the original context."""
        turns = context / (rotations * 2 * math.pi)
        return width * math.log(turns) / (2 * math.log(theta))

    low = channel(scaling.optional_number("beta_fast") or 32)
    high = channel(scaling.optional_number("beta_slow") or 1)
    if "truncate" not in scaling.values or scaling.flag("truncate"):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    if low == high:
        high += 0.001
    ramp = (np.arange(width // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low)
    keep = 1 - np.clip(ramp, 0, 1)
    powers = _powers(values, width)
    stretched = np.float32(1) / (np.float32(factor) * powers)
    frequencies = stretched * (1 - keep) + np.float32(1) / powers * keep
    return Rotary(_floats(frequencies), _yarn_factor(scaling, factor))


def _yarn_factor(scaling: Config, factor: float) -> float:
    given = scaling.optional_number("attention_factor")
    if given is not None:
        return given

    def mscale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    if scaling.value("mscale") and scaling.value("mscale_all_dim"):
        return mscale(scaling.number("mscale")) / mscale(scaling.number("mscale_all_dim"))
    return mscale(1)


def _longrope(values: RopeValues, width: int) -> Rotary:
    """Scale each channel by its own factor, and by another one in texts longer than the context."""
    scaling, context, powers = values.scaling, values.original(), _powers(values, width)

    def by_channel(key: str) -> tuple[float, ...]:
        factors = np.array(scaling.numbers(key, width // 2), np.float32)
        return _floats(np.float32(1) / (factors * powers))

    given = scaling.optional_number("attention_factor")
    if given is None:
        factor = values.extension()
        if context == 1:
            raise BadModel(values.config.path, "longrope needs an original context above 1")
        given = math.sqrt(1 + math.log(factor) / math.log(context)) if factor > 1 else 1.0
    return Rotary(by_channel("short_factor"), given, by_channel("long_factor"), context)


def _dynamic(values: RopeValues, width: int) -> Rotary:
    """Leave frequencies undefined above the context, where they change with each length.

    Rotated keys in a cache keep the frequencies of the lengths at which they were read, so no
    length above the context has a result of its own.
    """
    values.factor()
    long = (math.nan,) * (width // 2)
    context = values.config.positive("max_position_embeddings")
    return Rotary(_floats(_plain(values, width)), long=long, context=context)


_KINDS: dict[str, Callable[[RopeValues, int], Rotary]] = {
    "default": _default,
    "dynamic": _dynamic,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}
