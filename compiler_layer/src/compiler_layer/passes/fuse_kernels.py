"""Fusion of consecutive kernels, so that values between them stay in registers."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE
from compiler_layer.model import Model
from compiler_layer.rewriting.graph_pass import GraphPass

MAX_OPERANDS = 12
"""Maximum number of inputs and outputs of a fused kernel; the instruction set has 16 windows."""


def _used_before(producer: npu.Kernel, consumer: npu.Kernel) -> bool:
    """Return whether another op uses the producer's results before the consumer runs."""
    users = {use.operation for result in producer.results for use in result.uses}
    at: Operation | None = producer.next_op
    while at is not None and at is not consumer:
        if at in users:
            return True
        at = at.next_op
    return at is None


def _can_join(producer: npu.Kernel, consumer: npu.Kernel) -> bool:
    operands = {*producer.operands, *consumer.operands, *producer.results, *consumer.results}
    return (
        producer.domain == consumer.domain
        and len(operands) <= MAX_OPERANDS
        and not _used_before(producer, consumer)
    )


def _copy_body(kernel: npu.Kernel, body: Block, values: dict[SSAValue, SSAValue]) -> None:
    """Append a kernel's ops to a block; add the new values of its results to ``values``."""
    local: dict[SSAValue, SSAValue] = {}
    for argument, operand in zip(kernel.body.block.args, kernel.operands, strict=True):
        if operand not in values:
            values[operand] = body.insert_arg(operand.type, len(body.args))
        local[argument] = values[operand]
    for op in kernel.body.block.ops:
        if isinstance(op, npu.Yield):
            yielded = [local[value] for value in op.values]
            values.update(zip(kernel.results, yielded, strict=True))
        else:
            body.add_op(op.clone(local))


def _join(producer: npu.Kernel, consumer: npu.Kernel) -> npu.Kernel:
    """Fuse two kernels into one, at the place of the second."""
    body = Block()
    values: dict[SSAValue, SSAValue] = {}
    inputs = [*producer.operands]
    inputs += [o for o in consumer.operands if o not in producer.results]
    for operand in dict.fromkeys(inputs):
        values[operand] = body.insert_arg(operand.type, len(body.args))
    _copy_body(producer, body, values)
    _copy_body(consumer, body, values)
    elsewhere = [
        result
        for result in producer.results
        if any(use.operation is not consumer for use in result.uses)
    ]
    outputs = [*elsewhere, *consumer.results]
    body.add_op(npu.Yield(*(values[output] for output in outputs)))
    joined = npu.Kernel(list(dict.fromkeys(inputs)), [o.type for o in outputs], body)
    name = consumer.attributes.get(NAME_ATTRIBUTE) or producer.attributes.get(NAME_ATTRIBUTE)
    if name is not None:
        joined.attributes[NAME_ATTRIBUTE] = name
    Rewriter.insert_op(joined, InsertPoint.before(consumer))
    for old, new in zip(outputs, joined.results, strict=True):
        old.replace_all_uses_with(new)
    for op in (consumer, producer):
        Rewriter.erase_op(op)
    return joined


def _grow(kernel: npu.Kernel) -> None:
    """Fuse producers into a kernel as long as possible."""
    while True:
        feeders = [o.owner for o in kernel.operands if isinstance(o.owner, npu.Kernel)]
        fitting = [f for f in feeders if _can_join(f, kernel)]
        if not fitting:
            return
        kernel = _join(fitting[-1], kernel)


class FuseKernels(GraphPass):
    """Fuse consecutive kernels, so that values between them stay in registers.

    Before:  %h = npu.kernel(%x, %y) { add } ; %n = npu.kernel(%h) { rms }
    After:   %h, %n = npu.kernel(%x, %y) { add, rms }

    Both must run over the same domain, so that nothing is computed twice.

    Requires: ``form-kernels``.
    """

    name = "fuse-kernels"

    def _rewrite(self, model: Model) -> None:
        for each in model.ops:
            if isinstance(each, npu.Kernel) and each.parent is not None and min(each.domain) > 0:
                _grow(each)
