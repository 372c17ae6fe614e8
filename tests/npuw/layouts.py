"""The tiny model with its caches in the layouts of other models."""

from __future__ import annotations

from pathlib import Path

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model, Variable
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer.storage.read_model import read_model

Layout = tuple[int, ...]
"""Index of each axis in [sequences, heads, tokens, width]."""

CHATGLM: Layout = (2, 0, 1, 3)
QWEN: Layout = (0, 2, 1, 3)
CHANNELS: Layout = (0, 1, 3, 2)
"""Channel-major; no known model uses it."""


def axes_of(layout: Layout) -> dict[str, int]:
    """Return the options of a layout."""
    return {"NPUW_LLM_BATCH_DIM": layout.index(0), "NPUW_LLM_SEQ_LEN_DIM": layout.index(2)}


def laid_out(model: Path, layout: Layout, folder: Path) -> Path:
    """Write a model as an IR whose caches have a layout; attention reads them in their former one.

    With CHATGLM the LM head is ChatGLM's, too.
    """
    found = read_model(model)
    for variable in found.variables():
        _lay_out(found, variable, layout)
    if layout == CHATGLM:
        (port,) = found.outputs
        found.set_outputs([(port.name, by_tokens(GraphBuilder(found), port.value))])
    remove_dead_code(found)
    path = folder / "openvino_model.xml"
    write_ir(found, path)
    return path


def by_tokens(g: GraphBuilder, logits: SSAValue) -> SSAValue:
    """Return ChatGLM's outputs: hidden states [tokens, 1, channels], and transposed logits."""
    head = logits.owner
    assert isinstance(head, MatMul)
    head.detach()
    head.operands[0] = g.transpose(head.a, 1, 0, 2)
    g.add(head)
    head.refresh_types()
    return g.transpose(head.output, 1, 0, 2)


def _lay_out(model: Model, variable: Variable, layout: Layout) -> None:
    read, assign = variable.read, variable.assign
    assert read is not None
    assert assign is not None
    back = [layout.index(axis) for axis in range(4)]
    join = assign.value.owner
    assert isinstance(join, Concat)
    by_beam = join.parts[0].owner
    assert isinstance(by_beam, Gather)
    before = GraphBuilder(model, read)
    shape = shape_of(read.output)
    stored = ReadValue(
        operands=[[before.transpose(init, *layout) for init in read.operands]],
        properties={"variable_id": read.variable_id},
        result_types=[tensor(element_of(read.output), tuple(shape[axis] for axis in layout))],
    )
    before.add(stored)
    past = GraphBuilder(model, by_beam).gather(stored.output, by_beam.indices, layout.index(0))
    g = GraphBuilder(model, join)
    grown = g.concat([past, g.transpose(join.parts[1], *layout)], layout.index(2))
    Rewriter.replace_op(join, [], [g.transpose(grown, *back)])
    assign.operands[0] = grown
    assign.refresh_types()
    for op, turned in ((by_beam, past), (read, stored.output)):
        _look_at_shape(model, op.output, turned, back)
        Rewriter.erase_op(op)


def _look_at_shape(model: Model, value: SSAValue, turned: SSAValue, back: list[int]) -> None:
    """Let ops that read the shape of a value read that of its transposed form."""
    for use in list(value.uses):
        op = use.operation
        assert isinstance(op, ShapeOf)  # other ops would read less than the complete cache
        g = GraphBuilder(model, op)
        shape = g.op(ShapeOf, turned, output_type=op.output_type)
        Rewriter.replace_op(op, [], [g.gather(shape, g.ints(*back), 0)])
