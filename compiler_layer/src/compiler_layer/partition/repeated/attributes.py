"""Attributes of a folded model, which describe its repeated block.

A folded model has the block's first and last repetition (and the second, if those two differ too
much). Attributes record the number of repetitions, and weights and variables in each, so that
passes and text preserve them:

``ov.repetitions``  on the function: their number; ``ov.second_repetition``: the one after the first
``ov.layer_names``  on the function: the layer counter in names of ops
``ov.repeated_ids`` on the function: ids of variables and inputs in each repetition
``#ov.repeated``    a weight's values in all repetitions (``dialects.ov.constant``)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from compiler_layer.dialects.ov.op import int_attr, int_value
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model

_REPETITIONS = "ov.repetitions"
_SECOND = "ov.second_repetition"
_LAYER_NAMES = "ov.layer_names"
_IDS = "ov.repeated_ids"


@dataclass(frozen=True, slots=True)
class LayerNames:
    """Layer counter in op names: ``prefix``, a number, and any text.

    ``first`` is the first layer of the first repetition, ``step`` the layers per repetition.
    """

    prefix: str
    first: int
    step: int

    def repetition(self, name: str) -> int | None:
        """Return the repetition that an op belongs to, or None if its name has no counter."""
        begin, end = self._number(name)
        if begin == end or int(name[begin:end]) < self.first:
            return None
        return (int(name[begin:end]) - self.first) // self.step

    def renamed(self, name: str, later: int) -> str:
        """Return the name of an op's counterpart ``later`` repetitions later."""
        begin, end = self._number(name)
        if begin == end or not later:
            return name
        return f"{name[:begin]}{int(name[begin:end]) + self.step * later}{name[end:]}"

    def _number(self, name: str) -> tuple[int, int]:
        """Return the range of the layer's number; empty if the name has none."""
        found = name.find(self.prefix) if self.prefix else -1
        begin = end = found + len(self.prefix) if found >= 0 else 0
        while found >= 0 and name[end : end + 1].isdigit():
            end += 1
        return begin, end


UNNAMED = LayerNames("", 0, 1)
"""Names without a layer counter."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Number of repetitions, and the number of the second one in the graph.

    ``second`` is the last repetition (``count - 1``) or the actual second (1).
    """

    count: int
    second: int


def kept_repetitions(model: Model) -> Kept | None:
    """Return the repetitions that a folded model has; None if the model is not folded.

    Raises:
        CompilerUsageError: the attributes are inconsistent.
    """
    if _REPETITIONS not in model.main.attributes:
        return None
    count, second = (_number(model.main.attributes.get(name)) for name in (_REPETITIONS, _SECOND))
    if count < 3 or second not in (1, count - 1):
        raise CompilerUsageError(f"a folded model of {count} layers cannot have {second} as second")
    return Kept(count, second)


def layer_names_of(model: Model) -> LayerNames:
    """Return the layer counter of a folded model.

    Raises:
        CompilerUsageError: see ``kept_repetitions``.
    """
    attribute = model.main.attributes.get(_LAYER_NAMES)
    if not isinstance(attribute, DictionaryAttr):
        return UNNAMED
    prefix = attribute.data.get("prefix")
    first, step = (_number(attribute.data.get(name)) for name in ("first", "step"))
    if not isinstance(prefix, StringAttr) or step < 1:
        raise CompilerUsageError(f"op names cannot count layers in steps of {step}")
    return LayerNames(prefix.data, first, step)


def _number(attribute: Attribute | None) -> int:
    if not isinstance(attribute, IntegerAttr):
        raise CompilerUsageError("a folded model needs integer attributes for its layers")
    return int_value(cast(Attribute, attribute))


def set_repetitions(model: Model, kept: Kept, names: LayerNames) -> None:
    """Mark a model as folded."""
    model.main.attributes[_REPETITIONS] = int_attr(kept.count)
    model.main.attributes[_SECOND] = int_attr(kept.second)
    described: dict[str, Attribute] = {
        "prefix": StringAttr(names.prefix),
        "first": int_attr(names.first),
        "step": int_attr(names.step),
    }
    model.main.attributes[_LAYER_NAMES] = DictionaryAttr(described)


def forget_repetitions(model: Model) -> None:
    """Mark a model as not folded, e.g. a part without a repeated block."""
    for name in (_REPETITIONS, _SECOND, _LAYER_NAMES, _IDS):
        model.main.attributes.pop(name, None)


def repeated_ids(model: Model) -> list[tuple[str, ...]]:
    """Return the ids in all repetitions, for each repeated variable or input."""
    found = _members(model.main.attributes.get(_IDS))
    return [tuple(x.data for x in _members(ids) if isinstance(x, StringAttr)) for ids in found]


def add_repeated_ids(model: Model, new: Sequence[Sequence[str]]) -> None:
    """Record the ids of variables or inputs in all repetitions."""
    known = [*repeated_ids(model), *new]
    if not known:
        return
    attributes = [ArrayAttr([StringAttr(each) for each in ids]) for ids in known]
    model.main.attributes[_IDS] = ArrayAttr(attributes)


def _members(attribute: Attribute | None) -> Sequence[Attribute]:
    return cast(ArrayAttr[Attribute], attribute).data if isinstance(attribute, ArrayAttr) else ()
