"""Which op goes to which part of a model, and what goes from part to part.

Each group of ops becomes a part of its own. All other ops run as early as they can: as soon as the
groups are through that they wait for. So parts alternate: what a group needs, the group, what only
it made possible. What depends on constants alone is copied to whoever uses it, weights among it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeGuard

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.random_uniform import RandomUniform
from compiler_layer.dialects.ov.types import tensor_type
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.pieces import LINK_PREFIX

_Key = tuple[int, int]
"""When a part runs, and the number of its group; -1 for what is of none."""

_FIRST = (0, -1)

_Node = Operation | int
"""An op, or the number of a group, which runs as one."""


@dataclass(frozen=True, slots=True)
class Group:
    """Ops that are to stand alone.

    Attributes:
        tag: what they are, e.g. "ATTN".
        ops: none of them is needed between two others by something that is not of the group.
    """

    tag: str
    ops: frozenset[Operation]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a model, with the group's tag, or "" for what lies between groups.

    Its inputs stand in the order in which its ops use them, its outputs in the order in which they
    are made; they are the model's own, by their names, or links.
    """

    tag: str
    model: Model


def cut_parts(model: Model, groups: Sequence[Group]) -> list[Part]:
    """Cut a model around groups of ops.

    Args:
        model: static and pure (``pipeline.lower_graph``); it is not changed.
        groups: disjoint.

    Returns:
        The parts, in an order in which they can run.

    Raises:
        CompilerUsageError: groups overlap; or one cannot stand alone, as what it needs depends on
            what it makes.
    """
    _check_disjoint(groups)
    return list(_Cutter(model, groups).parts())


def _check_disjoint(groups: Sequence[Group]) -> None:
    owner: dict[Operation, Group] = {}
    for group in groups:
        for op in group.ops:
            other = owner.setdefault(op, group)
            if other is not group:
                raise CompilerUsageError(
                    f"{op.name} is to be of {other.tag!r} and of {group.tag!r}"
                )


class _Cutter:
    """Cuts one model."""

    def __init__(self, model: Model, groups: Sequence[Group]) -> None:
        self._model = model
        self._groups = groups
        self._group_of = {op: number for number, group in enumerate(groups) for op in group.ops}
        self._fixed = fixed_ops(model)
        self._part_of = self._places()
        self._links = self._find_links()

    def parts(self) -> Iterator[Part]:
        for key in sorted({_FIRST, *self._part_of.values()}):
            outputs = list(self._outputs(key))
            if outputs:
                tag = self._groups[key[1]].tag if key[1] >= 0 else ""
                yield Part(tag, self._extract(key, outputs))

    def _places(self) -> dict[Operation, _Key]:
        """The part of each op that is not fixed: when it runs, and its group's number or -1."""
        needs: dict[_Node, set[_Node]] = {}
        for op in self._model.body.ops:
            if op not in self._fixed and op is not self._model.terminator:
                node = self._node(op)
                before = {self._node(x.op) for x in op.operands if self._moves(x)}
                needs.setdefault(node, set()).update(before - {node})
        steps: dict[_Node, int] = {}
        try:
            for node in TopologicalSorter(needs).static_order():
                # Groups run in odd steps, all else in even ones: after a group in the next one.
                step = max((steps[each] + steps[each] % 2 for each in needs[node]), default=0)
                steps[node] = step + 1 if isinstance(node, int) else step
        except CycleError as error:
            numbers = [node for node in error.args[1] if isinstance(node, int)]
            tag = self._groups[numbers[0]].tag if numbers else ""
            raise CompilerUsageError(
                f"a group {tag!r} cannot stand alone: what it needs depends on what it makes"
            ) from None
        # In the order of the model: so outputs stand as they are made.
        moving = (op for op in self._model.body.ops if self._node(op) in steps)
        return {op: self._key(self._node(op), steps) for op in moving if op not in self._fixed}

    @staticmethod
    def _key(node: _Node, steps: Mapping[_Node, int]) -> _Key:
        return steps[node], node if isinstance(node, int) else -1

    def _node(self, op: Operation) -> _Node:
        return self._group_of.get(op, op)

    def _moves(self, value: SSAValue) -> TypeGuard[OpResult]:
        """Whether a value is made by an op that runs in one part alone."""
        return isinstance(value, OpResult) and value.op not in self._fixed

    def _find_links(self) -> dict[SSAValue, str]:
        """Name what goes from part to part, in the order in which it is made."""
        links: dict[SSAValue, str] = {}
        for op in self._model.body.ops:
            for result in op.results if op in self._part_of else ():
                users = {self._part_of.get(use.operation) for use in result.uses} - {None}
                if users - {self._part_of[op]}:
                    links[result] = f"{LINK_PREFIX}{len(links)}"
        return links

    def _outputs(self, key: _Key) -> Iterator[tuple[str, SSAValue]]:
        """What a part makes for others; what no op makes is given by the first."""
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
        """Copy what a part's outputs need, each op after the constants that it uses."""
        ops, inputs = self._needed(key, [value for _, value in outputs])
        names = {port.value: port.name for port in self._model.inputs} | self._links
        made, arguments = Model.build([(names[value], tensor_type(value)) for value in inputs])
        copies: dict[SSAValue, SSAValue] = dict(zip(inputs, arguments, strict=True))
        for op in ops:
            copy = op.clone(copies)
            made.body.insert_op_before(copy, made.terminator)
            copies.update(zip(op.results, copy.results, strict=True))
        made.set_outputs([(name, copies[value]) for name, value in outputs])
        return made

    def _needed(
        self, key: _Key, wanted: Sequence[SSAValue]
    ) -> tuple[list[Operation], list[SSAValue]]:
        """The ops that a part computes values by, and the values that it is given."""
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


def fixed_ops(model: Model) -> frozenset[Operation]:
    """The ops whose value depends on constants alone; what is drawn is another one each time."""
    fixed: set[Operation] = set()
    for op in model.body.ops:
        drawn = isinstance(op, RandomUniform)
        if not drawn and all(isinstance(x, OpResult) and x.op in fixed for x in op.operands):
            fixed.add(op)
    return frozenset(fixed)
