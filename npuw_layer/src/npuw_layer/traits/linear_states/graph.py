"""Pass for models with states of fixed size: short convolutions continue from their states.

Source: optimum-intel's patches of LFM-2's and Mamba's mixers, which define the exported form.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.convolution import GroupConvolution
from compiler_layer.dialects.ov.elementwise import Add, Multiply
from compiler_layer.dialects.ov.op import OvOp, ints_attr
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model, Variable
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.match import stored_constant
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.computed import made_of
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.kept_variables import keep_variable
from npuw_layer.llm.graph.last_token_head import last_token
from npuw_layer.llm.graph.stored_rows import read_value
from npuw_layer.llm.graph.window_tables import CompareWindowTables
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.traits.linear_states.trait import is_linear_cache


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model with short convolutions.

    Raises:
        ModelError: a state does not belong to a short convolution.
    """
    del options
    variables = [each.name for each in model.variables()]
    if not any(map(is_linear_cache, variables)):
        return ()
    generates = stage.kind is StageKind.GENERATE
    return (Placed(CompareWindowTables.name, ContinueConvolutions(stage.tokens, generates)),)


@dataclass(frozen=True, slots=True)
class _ShortConvolution:
    """A convolution over its variable and the new tokens."""

    read: ReadValue
    assign: Assign
    convolution: GroupConvolution
    biases: tuple[SSAValue, ...]
    """Terms added to the convolution's output."""
    mixed: Add
    """Sum of the two branches."""
    single: SSAValue
    """Filters of the single-token branch, with as many elements as the convolution's."""

    @property
    def new(self) -> SSAValue:
        """Input of the convolution, [1, channels, tokens]."""
        return self.convolution.x


def _rewrite(model: Model, one: _ShortConvolution, tokens: int, generates: bool) -> None:
    g = GraphBuilder(model, one.mixed)
    name, element = one.read.variable_id, element_of(one.new)
    _, channels, places = shape_of(one.read.output)
    read = g.add(read_value(name.data, element, (1, channels, places)))
    keep_variable(read)
    past = read.output
    joined = g.concat([past, one.new], 2)
    filters = one.convolution.filters
    if generates:
        filters = g.reshape(one.single, *shape_of(filters))
    none, one_step = ints_attr([0]), ints_attr([1])
    # The first element of the state is outside the windows of new tokens.
    output = g.op(
        GroupConvolution,
        g.slice(joined, 2, 1),
        filters,
        strides=one_step,
        pads_begin=none,
        pads_end=none,
        dilations=one_step,
        auto_pad=StringAttr("explicit"),
    )
    for bias in one.biases:
        output = g.op(Add, output, bias)
    kept = g.add(Assign.make([_last(model, g, joined, tokens, places)], variable_id=name)).output
    Rewriter.replace_op(one.mixed, [], [output])
    Rewriter.replace_op(one.assign, [], [kept])
    Rewriter.replace_op(one.read, [], [past])


def _last(model: Model, g: GraphBuilder, joined: SSAValue, tokens: int, places: int) -> SSAValue:
    """Return the last elements up to the last token in use, [1, channels, places].

    Padding follows the last token in use, so its place is known only at run time. Each element is a
    matmul with a vector that is 1 at one place, which is exact.
    """
    if tokens == 1:
        return g.slice(joined, 2, 1)
    which = last_token(model, tokens, element_of(joined))
    windows = (g.slice(joined, 2, 1 + place, 1 + place + tokens) for place in range(places))
    return g.concat([g.matmul(window, which, True) for window in windows], 2)


def _find(variable: Variable) -> _ShortConvolution:
    """Return the convolution that a variable belongs to.

    Raises:
        ModelError: there is no such convolution, or it is not depthwise.
    """
    name, read, assign = variable.name, variable.read, variable.assign
    if read is None or assign is None:
        raise ModelError(f"variable {name!r} is not both read and assigned")
    for value in _backward(assign.value):
        for use in value.uses:
            op = use.operation
            if isinstance(op, GroupConvolution) and op.x is value and _fits(op, read):
                mixed, branch, biases = _mixed(name, op, read)
                single = _single_filters(name, branch, op)
                return _ShortConvolution(read, assign, op, biases, mixed, single)
    raise ModelError(f"variable {name!r} belongs to no supported short convolution")


def _fits(op: GroupConvolution, read: ReadValue) -> bool:
    """Return whether a convolution is causal, depthwise, and as long as the state."""
    rank = len(shape_of(read.output))
    if rank != 3 or len(shape_of(op.x)) != rank or not op.is_depthwise:
        return False
    _, channels, places = shape_of(read.output)
    groups, _, _, kernel = shape_of(op.filters)
    steps = (*op.strides.get_values(), *op.dilations.get_values())
    before = op.pads_begin.get_values()
    return (groups, kernel) == (channels, places) and {*steps} == {1} and before == (kernel - 1,)


def _mixed(
    name: str, op: GroupConvolution, read: ReadValue
) -> tuple[Add, SSAValue, tuple[SSAValue, ...]]:
    """Return the Add of both branches, the single-token branch, and the biases."""
    value: SSAValue = op.output
    biases: list[SSAValue] = []
    while True:
        users = [use.operation for use in value.uses]
        if len(users) != 1 or not isinstance(users[0], Add | Slice | Multiply):
            raise ModelError(f"variable {name!r}: unsupported use of its convolution's output")
        user = users[0]
        if isinstance(user, Add):
            other = user.b if user.a is value else user.a
            if any(each is read.output for each in _backward(other, op.x)):
                return user, other, tuple(biases)
            if stored_constant(other) is None:
                raise ModelError(f"variable {name!r}: its convolution has a computed bias")
            biases.append(other)
        value = user.results[0]


def _single_filters(name: str, branch: SSAValue, op: GroupConvolution) -> SSAValue:
    """Return the constant filters by which the single-token branch multiplies the state."""
    count = math.prod(shape_of(op.filters))
    for value in _backward(branch, op.x):
        if isinstance(value.owner, Multiply):
            for factor in value.owner.operands:
                if math.prod(shape_of(factor)) == count and not any(True for _ in made_of(factor)):
                    return factor
    raise ModelError(f"variable {name!r}: its single-token filters are not supported")


def _backward(value: SSAValue, end: SSAValue | None = None) -> Iterator[SSAValue]:
    """Yield a value and the values it depends on, the nearest first, not through shapes.

    Args:
        value: value to start from.
        end: value whose dependencies are left out.
    """
    waiting, known = deque([value]), {value}
    while waiting:
        current = waiting.popleft()
        yield current
        owner = current.owner
        if current is end or not isinstance(owner, OvOp) or isinstance(owner, ShapeOf | ReadValue):
            continue
        fresh = _new(owner.operands, known)
        known.update(fresh)
        waiting.extend(fresh)


def _new(values: Iterable[SSAValue], known: set[SSAValue]) -> list[SSAValue]:
    return [value for value in dict.fromkeys(values) if value not in known]


@dataclass(frozen=True)
class ContinueConvolutions(GraphPass):
    """Continue short convolutions from their states, which hold the last tokens in use.

    Before:  %y = ov.Add(ov.Multiply(%prompt, %is_prompt), ov.Multiply(%single, %is_single))
    After:   %j = ov.Concat(%state, %new) ; %y = ov.GroupConvolution(%j, %filters)
             ov.Assign(the last elements of %j)

    The exporter writes two branches and multiplies one of them by 0. Several tokens are a prompt,
    whose convolution starts with zeros, regardless of the state; a single token is appended to the
    state. A prompt read in chunks would lose the tokens before each chunk. Here new tokens always
    follow the state, so cuts do not matter. This also corrects a prompt of a single token, which
    the exporter puts in the wrong place.

    Each branch has its own filters. An exporter that compresses weights compresses only the
    filters of prompts, so those of single tokens differ. With ``generates`` the single-token
    filters are used, as in OpenVINO, for any number of tokens.

    Raises:
        ModelError: a state does not belong to a short convolution.
    """

    name = "continue-convolutions"

    tokens: int
    generates: bool = False

    def _rewrite(self, model: Model) -> None:
        found = [_find(each) for each in model.variables() if is_linear_cache(each.name)]
        for one in found:
            _rewrite(model, one, self.tokens, self.generates)
        remove_dead_code(model)
