"""Variables of adapters in static graphs: some become inputs, others are rejected."""

from __future__ import annotations

import pytest

from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.types import shape_of
from npuw_layer.errors import ModelError, NoHead
from npuw_layer.llm.graph.head_alone import HeadAlone
from npuw_layer.llm.graph.pipeline import run_passes, stage_graph
from npuw_layer.llm.plan.stages import StageKind, plan
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.traits.lora.graph import FixRank, reads_adapters
from npuw_layer.traits.lora.names import adapter_name


def read_by(graph) -> dict[str, tuple[int, ...]]:
    """Return the adapters' variables that a graph reads, with their shapes."""
    return {
        variable.name: shape_of(variable.read.output)
        for variable in graph.variables()
        if adapter_name(variable.name) is not None
    }


def test_bodies_read_adapters_at_the_largest_rank_and_assign_none(llama) -> None:
    model, options = read_model(llama.path), parse_options({"NPUW_LLM_MAX_LORA_RANK": "16"})
    before = str(model.module)
    for stage in plan(options).stages:
        graph = stage_graph(model, stage, options)
        found = read_by(graph)
        if stage.kind is StageKind.HEAD:
            assert not found
            continue
        product = llama.product("layers.1.mlp.down_proj")
        assert len(found) == 3 * len(llama.adapted)
        assert found[f"{product}.A"] == (16, 160)
        assert found[f"{product}.alpha"] == (1, 16)
        assert found[f"{product}.B"] == (96, 16)
        assert all(each.assign is None for each in graph.variables() if each.name in found)
    assert str(model.module) == before


def test_an_adapted_head_reads_only_its_own_adapter(adapt) -> None:
    model = adapt("llama_fp16", r"mlp|lm_head")
    graphs = {
        stage.kind: stage_graph(read_model(model.path), stage, parse_options({}))
        for stage in plan(parse_options({})).stages
    }
    of_head = {f"{model.product('lm_head')}.{part}" for part in ("A", "alpha", "B")}
    assert set(read_by(graphs[StageKind.HEAD])) == of_head
    assert not of_head & set(read_by(graphs[StageKind.GENERATE]))
    assert len(read_by(graphs[StageKind.GENERATE])) == 3 * (len(model.adapted) - 1)


def test_a_model_without_adapters_is_not_changed(demo) -> None:
    assert not reads_adapters(read_model(demo))


def test_a_state_that_inferences_change_is_rejected(llama) -> None:
    model = read_model(llama.path)
    ends = "up_proj/aten::linear/MatMul.A"
    first, second = [each for each in model.variables() if each.name.endswith(ends)]
    first.assign.operands[0] = second.read.output
    with pytest.raises(ModelError, match=r"state 'lora_state.*\.A' is not read and assigned unch"):
        run_passes(model, [FixRank(32)])


def test_a_term_that_only_resembles_an_adapter_prevents_cutting_the_head(adapt) -> None:
    """The last factor is computed from tokens, which a separate head does not have."""
    model = adapt("llama_fp16", r"mlp|lm_head")
    graph = read_model(model.path)
    run_passes(graph, [FixRank(32)])
    run_passes(graph.clone(), [HeadAlone(1)])
    b = next(v for v in graph.variables() if v.name == f"{model.product('lm_head')}.B")
    computed = next(op for op in graph.body.ops if isinstance(op, Gather)).output
    b.read.output.replace_all_uses_with(computed)
    with pytest.raises(NoHead):
        run_passes(graph, [HeadAlone(1)])
