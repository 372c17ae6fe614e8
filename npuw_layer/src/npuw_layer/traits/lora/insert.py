"""Insertion of adapters into a stateful graph: as states, as constants, or into weights.

Source: openvino_genai's LoRASeparateTransform and LoRAFuseTransform (src/cpp/src/lora/adapter.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Add, Multiply
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, int_value
from compiler_layer.dialects.ov.state import Assign
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import convert_values, numpy_element
from compiler_layer.model import Model
from compiler_layer.rewriting.match import stored_constant
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.stored_rows import read_value
from npuw_layer.traits.lora.graph import reads_adapters
from npuw_layer.traits.lora.low_rank import LowRank, Mode
from npuw_layer.traits.lora.names import AdapterTensor

_ENDS = "MatMul"
"""Suffix that NPUW requires of names of adapted matmuls; names in exported IRs have it."""


def insert_adapters(model: Model, adapters: Mapping[str, LowRank], mode: Mode) -> None:
    """Insert adapters into a model.

    Args:
        model: changed in place. States have openvino_genai's names,
            ``lora_state_<n><product>.A``, where n is the number of variables before insertion.
        adapters: adapter of each matmul, by name.
        mode: way of insertion.

    Raises:
        ModelError: the model has no such matmul, or one of other widths, or quantized weights that
            cannot be changed, or already has states of adapters.
    """
    if reads_adapters(model):
        raise ModelError("the model already has adapters; set its states, or use one without them")
    found = adaptable_matmuls(model)
    for name, added in adapters.items():
        _check(name, added, found.get(name))
    variables = len(model.variables())
    for name, op in found.items():
        added = adapters.get(name)
        if added is None:
            continue
        match mode:
            case Mode.FUSE:
                _fuse(model, name, op, added)
            case Mode.STATIC:
                _put_beside(model, op, partial(_constant, model, op), added)
            case Mode.DYNAMIC | Mode.STATIC_RANK:
                prefix = f"lora_state_{variables}{name}"
                _put_beside(model, op, partial(_variable, model, op, prefix), added)
                variables += len(AdapterTensor)


def adaptable_matmuls(model: Model) -> dict[str, MatMul]:
    """Return the matmuls y = x Wᵀ (or x W) with a matrix of known size, by name, in order."""
    found: dict[str, MatMul] = {}
    for op in model.body.ops:
        if isinstance(op, MatMul) and NAME_ATTRIBUTE in op.attributes and _is_adaptable(op):
            found.setdefault(_name(op), op)
    return found


def widths(op: MatMul) -> tuple[int, int]:
    """Return the widths of a matmul's input and output."""
    rows, columns = shape_of(op.b)
    return (columns, rows) if int_value(op.transpose_b) else (rows, columns)


def _is_adaptable(op: MatMul) -> bool:
    shape = shape_of(op.b)
    plain = not int_value(op.transpose_a) and len(shape_of(op.a)) > 1
    return plain and len(shape) == 2 and min(shape) > 0


def _name(op: MatMul) -> str:
    name = op.friendly_name
    return name if name.endswith(_ENDS) else f"{name}/{_ENDS}"


def _check(name: str, added: LowRank, op: MatMul | None) -> None:
    if op is None:
        raise ModelError(f"the model has no matmul {name!r} to adapt")
    expected = widths(op)
    if (added.a.shape[1], added.b.shape[0]) != expected:
        raise ModelError(
            f"{name} has {expected[0]} input and {expected[1]} output channels; A "
            f"{list(added.a.shape)} and B {list(added.b.shape)} do not fit"
        )


def _constant(model: Model, before: MatMul, part: AdapterTensor, like: Array) -> SSAValue:
    """Return a tensor of an adapter as a constant."""
    del part
    return GraphBuilder(model, before).add(Constant.inline(like)).output


def _variable(
    model: Model, before: MatMul, prefix: str, part: AdapterTensor, like: Array
) -> SSAValue:
    """Return a variable of an array's type and width, of any rank; inferences do not change it."""
    full = list(like.shape)
    full[part.rank_axis] = -1
    name = f"{prefix}.{part.value}"
    read = read_value(name, numpy_element(like.dtype), tuple(full))
    value = GraphBuilder(model, before).add(read).output
    GraphBuilder(model).add(Assign.make([value], variable_id=StringAttr(name)))
    return value


def _put_beside(
    model: Model, op: MatMul, make: Callable[[AdapterTensor, Array], SSAValue], added: LowRank
) -> None:
    """Replace y = x Wᵀ by y + ((x Aᵀ) · alpha) Bᵀ, in the type of y."""
    kind, g = element_of(op.output), GraphBuilder(model, op.next_op)
    given = [
        make(AdapterTensor.A, added.a),
        make(AdapterTensor.ALPHA, added.alpha),
        make(AdapterTensor.B, added.b),
    ]
    a, alpha, b = [each if element_of(each) == kind else g.convert(each, kind) for each in given]
    uses = list(op.output.uses)
    low = g.op(Multiply, g.matmul(op.a, a, transpose_b=True), alpha)
    adapted = g.op(Add, op.output, g.matmul(low, b, transpose_b=True))
    for use in uses:
        use.operation.operands[use.index] = adapted


def _fuse(model: Model, name: str, op: MatMul, added: LowRank) -> None:
    """Replace W by W + B · alpha · A for this matmul only; other readers of W are unaffected."""
    weights = stored_constant(op.b)
    if weights is None:
        raise ModelError(
            f"the weights of {name} are quantized, so adapters cannot be fused (MODE_FUSE); use "
            "MODE_STATIC, or f32, f16 or bf16 weights"
        )
    held = convert_values(weights.load(), element_of(weights.output), "f32")
    change = (added.b * added.alpha).astype("f4") @ added.a.astype("f4")
    values = held + (change if int_value(op.transpose_b) else change.T)
    fused = Constant.inline(convert_values(values, "f32", element_of(op.b)), element_of(op.b))
    op.operands[1] = GraphBuilder(model, op).add(fused).output
