"""Isolated attention groups: their ops, and the description of their attention."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Exp, Negative
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.model import Model
from compiler_layer.partition.parts import cut_parts
from compiler_layer.pipeline import Options, lower_graph
from host_attention.attentions import Attention
from npuw_layer.backends.protocols import READ_PREFIX
from npuw_layer.execution.host_attention.groups import attention_groups
from npuw_layer.execution.host_attention.pattern import find_attention
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model


def lowered(folder: Path, **options: str) -> Model:
    """Return a prefill model of 32 tokens after 96."""
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
    parsed = parse_options(lengths | options)
    graph = stage_graph(read_model(folder), plan(parsed).prefill[-1], parsed)
    lower_graph(graph, Options(precision=parsed.precision))
    return graph


@pytest.mark.parametrize("kv", ["", "i8"])
def test_a_group_reads_the_cache_in_its_stored_layout(tiny: Path, kv: str) -> None:
    model = lowered(tiny, KV_CACHE_PRECISION=kv)
    groups = attention_groups(model, "HFA")
    wide = {"ov.Dequantize": 2} if kv else {}
    kinds = {"ov.Transpose": 2, "ov.Concat": 2, "ov.ScaledDotProductAttention": 1} | wide
    assert [Counter(op.name for op in group.ops) for group in groups] == [kinds, kinds]
    parts = [part.model for part in cut_parts(model, groups) if part.tag == "HFA"]
    for part in parts:
        attention = find_attention(part)
        assert attention is not None
        assert all(name.startswith(READ_PREFIX) for name in attention.stored)
        assert (len(attention.stored), attention.shape.scaled) == ((4, True) if kv else (2, False))
        assert (attention.shape.tokens, attention.shape.past) == (32, 96)
        assert (attention.shape.heads, attention.shape.group) == (2, 2)
        kinds_of = {(info.name, info.element, info.shape) for info in attention.inputs}
        ports = {port.name: port for port in part.inputs}
        assert {(name, shape) for name, _, shape in kinds_of} == {
            (name, tuple(port.type.get_shape())) for name, port in ports.items()
        }


def test_attention_whose_converted_rows_have_other_users_is_not_isolated(tiny: Path) -> None:
    model = lowered(tiny)
    first = next(op for op in model.body.ops if isinstance(op, Concat))
    also = GraphBuilder(model).op(Exp, first.output)
    model.set_outputs([*((port.name, port.value) for port in model.outputs), ("also", also)])
    assert len(attention_groups(model, "HFA")) == 1, "of two layers"


def test_attention_without_a_cache_is_not_isolated() -> None:
    graph = Attention().graph()
    assert attention_groups(graph, "HFA") == [], "none of its inputs is a variable's"


def test_a_model_with_other_ops_is_not_an_attention() -> None:
    graph = Attention().graph()
    assert find_attention(graph) is not None
    y = GraphBuilder(graph).op(Negative, graph.outputs[0].value)
    for outputs in ([("y", y)], [("y", graph.outputs[0].value), ("z", y)]):
        graph.set_outputs(outputs)
        assert find_attention(graph) is None
