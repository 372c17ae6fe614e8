"""Folding: repeated layers are compiled once, and the program computes all layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.splitting import split

from compiler_layer.compile import compile_model
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.explain import explain
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.model import Model, PortSelection
from compiler_layer.partition.repeated.attributes import kept_repetitions
from compiler_layer.partition.repeated.fold import folded
from compiler_layer.pipeline import Options, passes, run_passes
from compiler_layer.schedule import build
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.program import Phase, Run, ScheduledProgram
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.metadata import read_network
from driver_layer.loader.read import read_blob
from npuw_layer import Core

PLATFORM = PLATFORMS["4000"]
TILES = 4
FAMILIES = {
    # by the number of layers in a block
    1: "llama_yarn qwen2 qwen3 phi3 gpt2 gpt_neox gpt_neox_serial mistral granite olmo2 starcoder2",
    2: "gemma2",
    3: "gemma3",
}
BLOCKS = [(name, layers) for layers, names in FAMILIES.items() for name in names.split()]
DIFFERENT = [("qwen3", 1), ("gpt2", 1), ("gpt_neox", 1), ("gemma2", 2), ("gemma3", 3)]
"""Models with different norms, projections, positions and windows."""


def deepened(description: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """Return a family's model with more layers, which repeat the existing ones in turns."""
    config = dict(description["config"])
    (key,) = {"num_hidden_layers", "n_layer"} & config.keys()
    known = config[key]
    config[key] = layers
    if config.get("layer_types"):
        pattern = {"gemma2": 2, "gemma3_text": 3}.get(config["model_type"], 1)
        config["layer_types"] = [config["layer_types"][i % pattern] for i in range(layers)]
    tensors: dict[str, Any] = {}
    for name, shape in description["tensors"].items():
        found = re.search(r"\.(\d+)\.", name)
        numbers = [int(found[1])] if found else []
        for number in [n for n in range(layers) if n % known in numbers]:
            tensors[name.replace(f".{numbers[0]}.", f".{number}.", 1)] = shape
        if not found:
            tensors[name] = shape
    return {**description, "config": config, "tensors": tensors}


@pytest.fixture(scope="module")
def deep(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, int], Path]:
    """Writer of folders of the families' small models with a number of layers."""
    families = load_module(Path(__file__).parents[3] / "goldens" / "families.py")

    def folder(name: str, layers: int) -> Path:
        target = tmp_path_factory.mktemp(f"{name}-{layers}")
        return families.write_folder(target, deepened(families.descriptions()[name], layers))

    return folder


def scheduled(model: Model, **options: Any) -> ScheduledProgram:
    """Lower a model without folding, and schedule it."""
    wanted = Options(fold=False, **options)
    run_passes(model, passes(wanted), wanted)
    return build.schedule(model, PLATFORM, TILES)


def written_out(program: ScheduledProgram) -> ScheduledProgram:
    """Return the same program with the tasks of all repetitions written out."""
    phase = Phase(expanded(program), [Run({}, 0)])
    return ScheduledProgram(
        program.layout, program.inputs, program.outputs, [phase], program.scratch_bytes
    )


@pytest.mark.matrix
@pytest.mark.parametrize(("tokens", "past"), [(1, 31), (16, 16)])
@pytest.mark.parametrize("weightless", [True, False])
def test_records_copied_as_arrays_equal_those_of_tasks_written_out(
    deep: Callable[[str, int], Path], tokens: int, past: int, weightless: bool
) -> None:
    model = folded(split(read_folder(deep("qwen2", 6)), tokens, past))
    assert model is not None
    program = scheduled(model, weightless=weightless)
    assert [len(phase.runs) for phase in program.phases] == [1, 5, 1]
    blobs = [
        emit_blob(Program("m", one, PLATFORM, TILES)) for one in (program, written_out(program))
    ]
    assert blobs[0] == blobs[1]


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "block"), DIFFERENT)
def test_the_number_of_scheduled_tasks_does_not_grow_with_the_layers(
    deep: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch, name: str, block: int
) -> None:
    counts: list[int] = []
    assign = build.assign_barriers

    def counting(tasks: Any, *others: Any) -> Any:
        counts[-1] += len(tasks)
        return assign(tasks, *others)

    monkeypatch.setattr(build, "assign_barriers", counting)
    sizes: list[int] = []
    for layers in (4 * block, 7 * block):
        counts.append(0)
        blob = compile_model(split(read_folder(deep(name, layers)), 1, 31), Options("f32"))
        sizes.append(len(explain(blob).layers))
    assert counts[0] == counts[1]
    assert sizes[1] > 1.5 * sizes[0], "the program itself has the operations of all layers"


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "block"), BLOCKS)
def test_a_folded_model_computes_the_unfolded_models_results(
    deep: Callable[[str, int], Path], name: str, block: int
) -> None:
    """Compare bit for bit, in a prompt and after it; the caches of all layers are used."""
    folder = deep(name, 4 * block + 1)
    lengths = {
        "NPUW_LLM_MAX_PROMPT_LEN": 16,
        "NPUW_LLM_MIN_RESPONSE_LEN": 16,
        "NPUW_LLM_PREFILL_PYRAMID": "NO",
        "NPUW_LLM_GENERATE_PYRAMID": "NO",
    }
    logits: dict[str, list[np.ndarray]] = {}
    for fold in ("YES", "NO"):
        options = lengths | {"INFERENCE_PRECISION_HINT": "f32", "NPUW_FOLD": fold}
        request = Core().compile_model(folder, "NPU", options).create_infer_request()
        ids = np.random.RandomState(3).randint(0, 90, (1, 20))
        found = logits.setdefault(fold, [])
        for begin, end in ((0, 11), (11, 12), (12, 13)):
            inputs = {
                "input_ids": ids[:, begin:end],
                "attention_mask": np.ones((1, end), np.int64),
                "position_ids": np.arange(begin, end)[None],
            }
            found.append(request.infer(inputs)["logits"].copy())
    assert all(np.isfinite(one).all() for one in logits["YES"])
    for one, other in zip(logits["YES"], logits["NO"], strict=True):
        assert np.array_equal(one, other)


def test_ports_and_operations_have_the_names_of_all_layers(
    deep: Callable[[str, int], Path],
) -> None:
    whole, smaller = (split(read_folder(deep("qwen3", 5)), 1, 31) for _ in range(2))
    smaller = folded(smaller)
    assert smaller is not None
    program, other = scheduled(smaller), scheduled(whole)
    assert {port.name for port in program.inputs} == {port.name for port in other.inputs}
    assert {port.name for port in program.outputs} == {port.name for port in other.outputs}
    names = [sorted(op.name for op in one.layout.ops) for one in (program, other)]
    in_layers = [[name for name in each if name.startswith("model.layers.")] for each in names]
    assert in_layers[0] == in_layers[1]


def test_a_model_with_strided_arguments_is_not_folded(deep: Callable[[str, int], Path]) -> None:
    folder, strided = deep("qwen3", 4), PortSelection(outputs=frozenset({"logits"}))
    blobs = [
        compile_model(split(read_folder(folder), 1, 31), Options(fold=fold, strided=strided))
        for fold in (True, False)
    ]
    assert blobs[0] == blobs[1]
    outputs = read_network(read_blob(blobs[0])).outputs
    assert [output.name for output in outputs if output.dynamic_strides] == ["logits"]


def test_layers_that_differ_are_not_folded_as_one_block(deep: Callable[[str, int], Path]) -> None:
    model = split(read_folder(deep("qwen2", 8)), 1, 31)
    assert _repetitions(model) == 8
    # A cache of another length makes the fourth layer differ.
    cache = next(v for v in model.variables() if ".3.key" in v.name)
    assert cache.read is not None
    rows, *others = cache.read.output.type.get_shape()[1:]
    model.set_input_shapes({cache.name: (1, rows + 1, *others)})
    assert _repetitions(model) == 4


def _repetitions(model: Model) -> int:
    smaller = folded(model)
    assert smaller is not None
    kept = kept_repetitions(smaller)
    assert kept is not None
    return kept.count
