"""Rejection of models with ops that the device cannot run; one error reports all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation, SSAValue

from compiler_layer.codegen import kernel_refusal
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, constant_of, ints_of
from compiler_layer.dialects.ov.convolution import Convolution, GroupConvolution
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.indexing import TopK
from compiler_layer.dialects.ov.interpolate import Interpolate
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.reduce import MVN, CumSum, LogSoftmax, Reduction, Softmax
from compiler_layer.dialects.ov.scatter import ScatterElementsUpdate
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import along_axes, element_of, shape_of
from compiler_layer.errors import UnsupportedOps
from compiler_layer.model import Model
from compiler_layer.passes.decompose_gqa import gqa_refusal
from compiler_layer.passes.form_kernels import is_row_wise
from compiler_layer.passes.lower_attention import attention_refusal
from compiler_layer.passes.lower_convolution import convolution_refusal
from compiler_layer.passes.lower_gather import gather_refusal
from compiler_layer.passes.lower_group_convolution import group_refusal
from compiler_layer.passes.lower_interpolate import interpolate_refusal
from compiler_layer.passes.lower_matmul import matmul_refusal
from compiler_layer.passes.lower_reduction import reduction_refusal
from compiler_layer.passes.lower_scatter import scatter_refusal
from compiler_layer.passes.lower_topk import topk_refusal
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import producer, unconverted
from compiler_layer.schedule.layout import VIEWS, view_refusal
from driver_layer.abi.metadata import ORDER_BY_RANK

Refusal = Callable[[Any], str | None]
"""Function that returns why an op cannot run, or None if it can."""


def _none(op: OvOp) -> None:
    """Refusal function of ops that are always supported."""
    del op


_LOWERINGS: dict[type[OvOp], Refusal] = {
    Constant: _none,
    Concat: _none,
    MatMul: matmul_refusal,
    Convolution: convolution_refusal,
    GroupConvolution: group_refusal,
    ScaledDotProductAttention: attention_refusal,
    Gather: gather_refusal,
    TopK: topk_refusal,
    ScatterElementsUpdate: scatter_refusal,
    Interpolate: interpolate_refusal,
    **dict.fromkeys(VIEWS, view_refusal),
}
"""Refusal function of each op that is not lowered to a kernel."""

_CODEBOOK_REMEDY = "export the model with --weight-format int4 or int8"


def refusal(op: OvOp) -> str | None:
    """Return why the device cannot run an op; "" if no op of its type can run, None if it can."""
    if isinstance(op, GroupQueryAttention):
        return gqa_refusal(op)  # absent operands have no elements
    # The pattern of a reshape to a scalar has no elements.
    read = op.operands[:1] if isinstance(op, VIEWS) else op.operands
    if any(0 in shape_of(value) for value in (*read, *op.results)):
        return None if isinstance(op, Constant) else "of an empty tensor"
    if any(element_of(value) == "f64" for value in (*op.operands, *op.results)):
        return "of f64: inputs, outputs and variables must have another type"
    codebook = _codebook_refusal(op)
    if codebook is not None:
        return codebook
    why = _lowering_refusal(op)
    if why is not None and op.operands and all(isinstance(x.owner, Constant) for x in op.operands):
        return f"{why} that is too large to be computed in advance".strip()
    return why


def _lowering_refusal(op: OvOp) -> str | None:
    ask = _LOWERINGS.get(type(op))
    if ask is not None:
        return ask(op)
    if is_row_wise(op) or isinstance(op, Softmax | LogSoftmax):
        return kernel_refusal(op)
    if isinstance(op, Reduction):
        return reduction_refusal(op)
    if isinstance(op, CumSum | MVN):
        return along_axes(ints_of(op.operands[1]) or (), len(shape_of(op.x)))
    return ""


def _codebook_refusal(op: Operation) -> str | None:
    """Return why an op reads weights from a codebook, or None if it does not.

    NNCF writes such weights for ``--weight-format cb4``, and no lowering reads them. Small ones
    have been folded by then.

        %table = ov.Convert(%values : tensor<16xf8e4m3>)
        %weights = ov.Gather(%table, ov.Convert(%indices : tensor<256x64xui4>), 0) * %scale
    """
    if not isinstance(op, Gather) or len(shape_of(op.data)) != 1:
        return None
    table, indices = (constant_of(unconverted(x)) for x in (op.data, op.indices))
    if table is None or indices is None:
        return None
    return (
        f"of weights from a codebook ({element_of(indices.output)} indices of "
        f"{shape_of(table.output)[0]} values, as --weight-format cb4 writes them)"
    )


def _beside_codebooks(model: Model) -> set[Operation]:
    """Return the ops that compute codebook indices or use codebook weights: they fail, too."""
    found: set[Operation] = set()
    weights: set[SSAValue] = set()
    for op in model.body.ops:
        if _codebook_refusal(op) is not None:
            weights.add(op.results[0])
            found |= {convert for x in op.operands if (convert := producer(x, Convert)) is not None}
        elif weights.intersection(op.operands):
            found.add(op)
            if all(x in weights or producer(x, Constant) is not None for x in op.operands):
                weights |= {*op.results}
    return found


class CheckSupported(GraphPass):
    """Reject models with ops that the device cannot run; the error reports all of them.

    Each lowering checks its own ops; the model is not changed.

    Requires: ``lift-state``; folding and fusing have run, so the remaining ops would be lowered.

    Raises:
        UnsupportedOps: with type, opset and friendly name of each op.
    """

    name = "check-supported"

    def _rewrite(self, model: Model) -> None:
        found = [
            (f"{kind} of {len(shape_of(port.value))} dimensions", port.name)
            for kind, ports in (("Parameter-1", model.inputs), ("Result-1", model.outputs))
            for port in ports
            if len(shape_of(port.value)) > max(ORDER_BY_RANK)
        ]
        refused: dict[OvOp, str] = {}
        for each in model.body.ops:
            why = refusal(each) if isinstance(each, OvOp) else None
            if isinstance(each, OvOp) and why is not None:
                refused[each] = why
        if not found and not refused:
            return
        has_codebooks = any(map(_codebook_refusal, refused))
        beside = _beside_codebooks(model) if has_codebooks else set[Operation]()
        found += [
            (_described(each, why), each.friendly_name)
            for each, why in refused.items()
            if each not in beside
        ]
        # Ops without a name were created for ops that have one.
        named = [item for item in found if item[1]] or found
        raise UnsupportedOps("the NPU", named, [_CODEBOOK_REMEDY] if has_codebooks else [])


def _described(op: OvOp, why: str) -> str:
    """Return an op's layer type, by which users search, and its refusal."""
    # Imported here: only refusals need the table of layers, which is slow to load.
    from compiler_layer.frontends.openvino_ir.ops import layer_kind

    return f"{layer_kind(op)} {why}".strip()
