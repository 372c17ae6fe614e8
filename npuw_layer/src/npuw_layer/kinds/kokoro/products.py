"""Matmuls of a Kokoro with its alignment, behind which rows are frames and not tokens.

The alignment, [1, tokens, frames], has a 1 where a frame is of a token. It follows from the
durations, and so nothing behind these products has a size that is known before the model runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model, Port
from npuw_layer.errors import ModelError
from npuw_layer.kinds.kokoro.names import OPTION

_INTEGERS = ("i64", "i32")
_FLOATS = ("f32", "f16")


@dataclass(frozen=True, slots=True)
class Products:
    """What a Kokoro is cut at.

    Attributes:
        durations: the output that says how many frames each token lasts, [tokens].
        audio: the output with samples, [samples].
        en: the product of what says how tokens sound (the style is in it: it is the wider one),
        asr: and of what they say; each [1, channels, tokens] times [1, tokens, frames].
    """

    durations: Port
    audio: Port
    en: MatMul
    asr: MatMul


def find_products(model: Model) -> Products:
    """Find them, by what depends on what; names count for nothing.

    Args:
        model: whose shapes are computed as far as they follow from the inputs.

    Raises:
        ModelError: the model is no Kokoro; the message says what it lacks.
    """
    durations = _output(model, _INTEGERS, "no output with whole numbers: how long tokens last")
    audio = _output(model, _FLOATS, "no floating-point output: the audio")
    following = _following(model, durations.value)
    found = [
        op
        for op in model.body.ops
        if isinstance(op, MatMul) and op.b in following and op.a not in following
    ]
    if len(found) != 2 or found[0].b is not found[1].b or not all(map(_is_plain, found)):
        raise _not_kokoro(
            "no two products of encodings, [1, channels, tokens], with an alignment that follows "
            "from the durations"
        )
    asr, en = sorted(found, key=lambda op: shape_of(op.a)[1])
    return Products(durations, audio, en, asr)


def _output(model: Model, elements: tuple[str, ...], lacking: str) -> Port:
    for port in model.outputs:
        if element_of(port.value) in elements:
            return port
    raise _not_kokoro(lacking)


def _following(model: Model, value: SSAValue) -> set[SSAValue]:
    """The values that depend on one."""
    following = {value}
    for op in model.body.ops:
        if any(operand in following for operand in op.operands):
            following.update(op.results)
    return following


def _is_plain(op: MatMul) -> bool:
    """Whether a product is of [1, channels, tokens] as it is, of channels that are known."""
    shape = shape_of(op.a)
    turned = int_value(op.transpose_a) or int_value(op.transpose_b)
    return not turned and len(shape) == 3 and shape[0] in (1, -1) and shape[1] > 0


def _not_kokoro(lacking: str) -> ModelError:
    return ModelError(
        f"{OPTION} = YES: the model is no Kokoro: it has {lacking}; export one with "
        "optimum-cli export openvino --library kokoro, or leave the option out"
    )
