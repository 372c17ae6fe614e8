"""Messages for mixtures of experts that cannot be made static."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.indexing import NonZero, TopK
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.scatter import ScatterElementsUpdate
from compiler_layer.dialects.ov.types import is_static, shape_of
from compiler_layer.errors import RUN_ON_CPU
from compiler_layer.rewriting.match import owner_of

_REMEDY = (
    f"mixtures such as those of Mixtral, Qwen2-MoE, Qwen3-MoE and DBRX are supported; {RUN_ON_CPU}"
)


def mixture_refusal(op: OvOp) -> str | None:
    """Return why a mixture of experts is not supported; None if an op belongs to no mixture.

    Args:
        op: the first op of a graph whose shape depends on the data.
    """
    if not _follows_choice(op) or not _reaches_experts(op):
        return None
    problem = (
        "its experts' tokens do not follow from one TopK, or are not computed one by one and added"
        if isinstance(op, NonZero)
        else "its tokens are sorted by expert, and cut at data-dependent places"
    )
    return f"mixture of experts at {op.described}: {problem}; {_REMEDY}"


def _follows_choice(op: Operation) -> bool:
    """Return whether an op depends on a TopK without a matmul in between, as a router's choice."""
    waiting, seen = [op], {op}
    while waiting:
        for value in waiting.pop().operands:
            maker = owner_of(value)
            if isinstance(maker, TopK):
                return True
            if maker is not None and maker not in seen and not isinstance(maker, MatMul):
                seen.add(maker)
                waiting.append(maker)
    return False


def _reaches_experts(op: Operation) -> bool:
    """Return whether data-dependent rows reach a matmul, or are scattered back among the tokens."""
    waiting: list[SSAValue] = [*op.results]
    seen: set[Operation] = set()
    while waiting:
        for use in waiting.pop().uses:
            user = use.operation
            if isinstance(user, MatMul | ScatterElementsUpdate):
                return True
            if user not in seen:
                seen.add(user)
                waiting += [x for x in user.results if not is_static(shape_of(x))]
    return False
