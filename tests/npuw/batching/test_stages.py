"""Models for several conversations as stages: exported, checked, planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuw_layer import Core
from npuw_layer.errors import BlobError
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.llm.plan.stages import Stage, StageKind, plan
from npuw_layer.options import parse_options
from npuw_layer.plan import plan_model


def test_models_for_each_number_of_slots_and_capacity_follow_the_others() -> None:
    options = {"NPUW_LLM_BATCH_SLOTS": "4,1,2,4", "NPUW_LLM_GENERATE_PYRAMID_STEPS": "256,1152"}
    planned = plan(parse_options(options))
    assert planned.slots == (1, 2, 4)
    assert [stage.name for stage in planned.stages[-9:]] == [
        *("lm_head", "lm_head_2", "lm_head_4"),
        *("generate_256_slots_2", "generate_1152_slots_2"),
        *("generate_256_slots_4", "generate_1152_slots_4"),
        *("prefill_32_slots_2", "prefill_32_slots_4"),
    ]
    assert [stage.name for stage in planned.own_heads] == ["lm_head"]


@pytest.mark.long
def test_an_exported_model_generates_in_slots(talks, crowd, tiny: Path, tmp_path: Path) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "INFERENCE_PRECISION_HINT": "f32", **crowd.SLOTS}
    compiled = Core().compile_model(tiny, "NPU", options)
    compiled.export_model(tmp_path / "tiny.blob")
    imported = Core().import_model(tmp_path / "tiny.blob", "NPU", {"WEIGHTS_PATH": str(tiny)})
    turns = [[crowd.Turn([i, 3], answer=4)] for i in range(3)]
    heard: list[list[object]] = []
    for model in (compiled, imported):
        engine = model.create_batching()
        found = [crowd.begin(engine.open(), each) for each in turns]
        assert 4 in {report.slots for report in crowd.run(engine)}
        heard.append(found)
    assert all(crowd.same(a, b, error=0) for a, b in zip(*heard, strict=True))


@pytest.mark.parametrize("other", [(2, 191), (4, 71), (1, 191)])
def test_a_program_of_other_slots_or_rows_is_rejected(talks, crowd, other) -> None:
    slots, past = other
    compiled = talks(**crowd.LADDER).request._compiled
    models, options = compiled.models, compiled.options
    head, stage = Stage(StageKind.HEAD, 4, 0), Stage(StageKind.GENERATE, 1, 191, 4)
    check_ports([stage, head], [models[stage], models[head]], options)
    other_model = models[Stage(StageKind.GENERATE, 1, past, slots)]
    with pytest.raises(BlobError, match="generate_192_slots_4 has"):
        check_ports([stage, head], [other_model, models[head]], options)


@pytest.mark.long
def test_a_plan_includes_the_speed_and_memory_of_slots(tmp_path: Path) -> None:
    config = {
        **{"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1e4},
        **{"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 4},
        **{"num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000},
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    alone, together = (
        plan_model(tmp_path, parse_options({"NPUW_LLM_BATCH_SLOTS": slots}), None)
        for slots in (1, 8)
    )
    (one,) = [each for each in together.stages if each.stage.name == "generate_1152_slots_8"]
    speeds = together.tokens_per_s(one), together.tokens_per_s(together.generate[-1])
    assert speeds[0] > 4 * speeds[1]
    caches = [next(i for i in found.memory if "cache" in i.name) for found in (alone, together)]
    assert caches[1].nbytes == 8 * caches[0].nbytes
