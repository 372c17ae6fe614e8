"""Cuts of a model around chosen ops, with names for the values between parts.

The chosen ops of a part are cut out together. All other ops run as early as possible: right after
the chosen parts that they depend on. Chosen parts therefore alternate with parts of other ops. Ops
that depend on constants alone, weights among them, are copied into each part that uses them.
``add_enclosed`` completes chosen parts by the ops between their ops, so that each can run as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeGuard

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.random_uniform import RandomUniform
from compiler_layer.dialects.ov.types import tensor_type
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.partition.compiled import LINK_PREFIX
from compiler_layer.rewriting.dataflow import makers, users

_Key = tuple[int, int]
"""Step of a part, and its number among the chosen ones, or -1."""

_FIRST = (0, -1)

_Node = Operation | int
"""Op, or number of a chosen part, whose ops run together."""


@dataclass(frozen=True, slots=True)
class PartOps:
    """Ops of a part to be cut out.

    Attributes:
        tag: the kind of part, e.g. "ATTN".
        ops: closed: no op outside is on a path between two of them.
    """

    tag: str
    ops: frozenset[Operation]


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a model, with the tag of its chosen ops, or "" if it has none.

    Inputs are in the order of their use by ops, outputs in the order of their definition. Both are
    the model's own, by name, or links (``LINK_PREFIX``).
    """

    tag: str
    model: Model


def cut_parts(model: Model, chosen: Sequence[PartOps]) -> list[Part]:
    """Cut a model around the chosen ops of some parts.

    Args:
        model: static and pure (``pipeline.lower_graph``); not changed.
        chosen: disjoint parts.

    Returns:
        The parts, in an executable order.

    Raises:
        CompilerUsageError: chosen ops overlap; or the ops of one part need a value that depends on
            a result of the same part.
    """
    _check_disjoint(chosen)
    return list(_Cutter(model, chosen).parts())


def _check_disjoint(chosen: Sequence[PartOps]) -> None:
    owner: dict[Operation, PartOps] = {}
    for part in chosen:
        for op in part.ops:
            other = owner.setdefault(op, part)
            if other is not part:
                raise CompilerUsageError(f"{op.name} is in parts {other.tag!r} and {part.tag!r}")


class _Cutter:
    def __init__(self, model: Model, chosen: Sequence[PartOps]) -> None:
        self._model = model
        self._chosen = chosen
        self._chosen_of = {op: number for number, part in enumerate(chosen) for op in part.ops}
        self._fixed = fixed_ops(model)
        self._part_of = self._places()
        self._links = self._find_links()

    def parts(self) -> Iterator[Part]:
        for key in sorted({_FIRST, *self._part_of.values()}):
            outputs = list(self._outputs(key))
            if outputs:
                tag = self._chosen[key[1]].tag if key[1] >= 0 else ""
                yield Part(tag, self._extract(key, outputs))

    def _places(self) -> dict[Operation, _Key]:
        """Return the part of each op that is not fixed."""
        needs: dict[_Node, set[_Node]] = {}
        for op in self._model.body.ops:
            if op not in self._fixed and op is not self._model.terminator:
                node = self._node(op)
                before = {self._node(x.op) for x in op.operands if self._moves(x)}
                needs.setdefault(node, set()).update(before - {node})
        steps: dict[_Node, int] = {}
        try:
            for node in TopologicalSorter(needs).static_order():
                # Chosen parts run in odd steps; other ops run in even steps, after chosen parts.
                step = max((steps[each] + steps[each] % 2 for each in needs[node]), default=0)
                steps[node] = step + 1 if isinstance(node, int) else step
        except CycleError as error:
            numbers = [node for node in error.args[1] if isinstance(node, int)]
            tag = self._chosen[numbers[0]].tag if numbers else ""
            raise CompilerUsageError(
                f"a part {tag!r} cannot run as one: its inputs depend on its own results"
            ) from None
        # The order is the model's, so that outputs keep the order of their ops.
        moving = (op for op in self._model.body.ops if self._node(op) in steps)
        nodes = {op: self._node(op) for op in moving if op not in self._fixed}
        return {op: (steps[x], x if isinstance(x, int) else -1) for op, x in nodes.items()}

    def _node(self, op: Operation) -> _Node:
        return self._chosen_of.get(op, op)

    def _moves(self, value: SSAValue) -> TypeGuard[OpResult]:
        """Return whether a value's op runs in one part only."""
        return isinstance(value, OpResult) and value.op not in self._fixed

    def _find_links(self) -> dict[SSAValue, str]:
        """Name the values between parts, in the order of their definition."""
        links: dict[SSAValue, str] = {}
        for op in self._model.body.ops:
            for result in op.results if op in self._part_of else ():
                users = {self._part_of.get(use.operation) for use in result.uses} - {None}
                if users - {self._part_of[op]}:
                    links[result] = f"{LINK_PREFIX}{len(links)}"
        return links

    def _outputs(self, key: _Key) -> Iterator[tuple[str, SSAValue]]:
        """Yield the outputs of a part; the first part has those without an op."""
        own: dict[SSAValue, list[str]] = {}
        for port in self._model.outputs:
            own.setdefault(port.value, []).append(port.name)
            if key == _FIRST and not self._moves(port.value):
                yield port.name, port.value
        for op, place in self._part_of.items():
            for result in op.results if place == key else ():
                yield from ((name, result) for name in own.get(result, ()))
                if result in self._links:
                    yield self._links[result], result

    def _extract(self, key: _Key, outputs: Sequence[tuple[str, SSAValue]]) -> Model:
        """Copy the ops that a part's outputs need, each op after its constants."""
        ops, inputs = self._needed(key, [value for _, value in outputs])
        names = {port.value: port.name for port in self._model.inputs} | self._links
        return copy_ops(ops, [(names[value], value) for value in inputs], outputs)

    def _needed(
        self, key: _Key, wanted: Sequence[SSAValue]
    ) -> tuple[list[Operation], list[SSAValue]]:
        """Return the ops of a part that some values need, and its inputs."""
        ops: dict[Operation, None] = {}
        inputs: dict[SSAValue, None] = {}
        pending = [(value, False) for value in reversed(wanted)]
        while pending:
            value, entered = pending.pop()
            op = value.op if isinstance(value, OpResult) else None
            if op is None or (op not in self._fixed and self._part_of[op] != key):
                inputs[value] = None
            elif entered:
                ops[op] = None
            elif op not in ops:
                pending.append((value, True))
                pending += [(operand, False) for operand in reversed(op.operands)]
        return list(ops), list(inputs)


def copy_ops(
    ops: Iterable[Operation],
    inputs: Sequence[tuple[str, SSAValue]],
    outputs: Sequence[tuple[str, SSAValue]],
) -> Model:
    """Copy ops, each after its operands, to a new model with the given inputs and outputs."""
    made, arguments = Model.build([(name, tensor_type(value)) for name, value in inputs])
    values = [value for _, value in inputs]
    copies: dict[SSAValue, SSAValue] = dict(zip(values, arguments, strict=True))
    for op in ops:
        copy = op.clone(copies)
        made.body.insert_op_before(copy, made.terminator)
        copies.update(zip(op.results, copy.results, strict=True))
    made.set_outputs([(name, copies[value]) for name, value in outputs])
    return made


def fixed_ops(model: Model) -> frozenset[Operation]:
    """Return the ops whose value depends on constants alone; random draws are not fixed."""
    fixed: set[Operation] = set()
    for op in model.body.ops:
        drawn = isinstance(op, RandomUniform)
        if not drawn and all(isinstance(x, OpResult) and x.op in fixed for x in op.operands):
            fixed.add(op)
    return frozenset(fixed)


def add_enclosed(model: Model, chosen: Sequence[PartOps]) -> list[PartOps]:
    """Add to each part the unchosen ops on a path between two of its ops.

    Args:
        model: static and pure; not changed.
        chosen: disjoint parts.

    Returns:
        The parts in their order. ``cut_parts`` rejects two parts that enclose each other.
    """
    number_of = {op: number for number, part in enumerate(chosen) for op in part.ops}
    ops = model.ops
    before = _reached(ops, number_of, makers)
    after = _reached(reversed(ops), number_of, users)
    members = [set(part.ops) for part in chosen]
    for op in ops:
        around = before[op] & after[op]
        if around and op not in number_of:
            members[around.bit_length() - 1].add(op)
    pairs = zip(chosen, members, strict=True)
    return [PartOps(part.tag, frozenset(ops)) for part, ops in pairs]


def _reached(
    ops: Iterable[Operation],
    number_of: dict[Operation, int],
    neighbours: Callable[[Operation], Iterator[Operation]],
) -> dict[Operation, int]:
    """Return, for each op, a bit mask of the parts reachable in one direction."""
    reached: dict[Operation, int] = {}
    for op in ops:
        found = 0
        for each in neighbours(op):
            found |= reached.get(each, 0)
            if each in number_of:
                found |= 1 << number_of[each]
        reached[op] = found
    return reached
