"""Conversations with a partitioned model: attention is isolated, on a separate device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps
from npuw_layer import Core
from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import Device
from npuw_layer.errors import DeviceError
from npuw_layer.execution.partition.container import read_container, write_container
from npuw_layer.execution.partition.device import PartitioningDevice
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.execution.partition.ports import Isolation
from npuw_layer.llm.compiled import CompiledLLM, compile_llm
from npuw_layer.options import parse_options
from npuw_layer.testing.check_device import DEVICE_CHECKS

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "96,192",
    "INFERENCE_PRECISION_HINT": "f32",
}


def attentions(model: Model) -> list[PartOps]:
    ops = [op for op in model.body.ops if isinstance(op, ScaledDotProductAttention)]
    return [PartOps("ATTN", frozenset([op])) for op in ops]


def npu() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def in_parts(whole: Device, attention: Device) -> Device:
    by_tag = {"ATTN": Isolation(attention, attentions)}
    return PartitioningDevice(whole, {"prefill": by_tag, "generate": by_tag})


def talk(core: Core, folder: Path, **options: str) -> np.ndarray:
    """Return all logits of a prompt of two chunks, a step into the next variant, and a rewind."""
    request = core.compile_model(folder, "NPU", SMALL | options).create_infer_request()
    said = [np.arange(90) * 7 % 97, *np.array([[3], [14], [15], [9], [26], [5], [35]])]

    def steps() -> Iterator[np.ndarray]:
        at = 0
        for ids in [*said, np.array([8])]:
            if ids[0] == 8:
                at -= 4
            yield request.infer(
                {
                    "input_ids": ids[None],
                    "attention_mask": np.ones((1, at + len(ids)), np.int64),
                    "position_ids": np.arange(at, at + len(ids))[None],
                }
            )["logits"][0, -1].copy()
            at += len(ids)

    return np.array(list(steps()))


def compiled(folder: Path, **options: str) -> CompiledLLM:
    device = npu()
    return compile_llm(folder, in_parts(device, device), parse_options(SMALL | options))


ONE_OF_EACH = {"NPUW_LLM_PREFILL_PYRAMID": "NO", "NPUW_LLM_GENERATE_PYRAMID": "NO"}
"""One prefill and one generate model, as variants add no cases."""


def alike(said: np.ndarray, whole: np.ndarray) -> bool:
    """Compare, except for the order of sums: a mask in memory hides its visible range."""
    return bool(np.abs(said - whole).max() < 1e-5 * np.abs(whole).max())


@pytest.fixture(scope="module")
def whole(tall: Path) -> np.ndarray:
    return talk(Core(), tall)


@pytest.mark.parametrize("check", DEVICE_CHECKS, ids=lambda check: check.__name__)
def test_a_partitioning_device_satisfies_the_device_protocol(check):
    device = npu()
    check(in_parts(device, device))


@pytest.mark.long
@pytest.mark.parametrize(
    ("between", "attention", "options"),
    [
        ("NPU", "NPU", {}),
        ("NPU", "CPU", ONE_OF_EACH | {"NPUW_FOLD": "NO"}),
        ("CPU", "CPU", ONE_OF_EACH),
    ],
)
def test_parts_on_any_device_equal_the_uncut_model(tall, whole, between, attention, options):
    make = {"NPU": npu, "CPU": InterpreterDevice}
    first = make[between]()
    device = in_parts(first, first if attention == between else make[attention]())
    said = talk(Core(device=device), tall, **options)
    assert alike(said, whole)


@pytest.mark.long
def test_links_keep_the_types_that_lowering_chose(tall):
    device = npu()
    f16 = ONE_OF_EACH | {"INFERENCE_PRECISION_HINT": "f16"}
    said = talk(Core(device=in_parts(device, device)), tall, **f16)
    whole = talk(Core(), tall, **f16)
    assert np.abs(said - whole).max() < 1e-2 * np.abs(whole).max()


@pytest.mark.long
def test_equal_layers_are_compiled_once(tall):
    """Seven layers: the parts before the first, between two, and after the last; and attention."""
    folded, single = (compiled(tall, NPUW_FOLD=fold, **ONE_OF_EACH) for fold in ("YES", "NO"))
    parts = [read_container(next(iter(model.programs.values()))) for model in (folded, single)]
    assert [len(each.functions) for each in parts] == [4, 15]
    assert [len(each.calls) for each in parts] == [15, 15]
    loaded = folded.models[folded.plan.stages[0]]
    assert isinstance(loaded, LoadedParts)
    everything = sum(nbytes(info) for info in parts[0].links.values())
    assert loaded.link_bytes < everything / 3, "links reuse the memory of other layers"


@pytest.mark.long
def test_a_partitioned_model_is_cached_exported_and_imported(tall, whole, tmp_path):
    device = npu()
    core = Core(device=in_parts(device, device))
    cached = ONE_OF_EACH | {"CACHE_DIR": str(tmp_path / "cache")}
    once, again = (core.compile_model(tall, "NPU", SMALL | cached) for _ in range(2))
    assert not once.get_property("LOADED_FROM_CACHE")
    assert again.get_property("LOADED_FROM_CACHE")
    assert alike(talk(core, tall, **cached), whole)
    again.export_model(tmp_path / "model.blob")
    of_file = {"BLOB_PATH": str(tmp_path / "model.blob"), "WEIGHTS_PATH": str(tall)}
    assert alike(talk(core, tall, **of_file), whole)


@pytest.mark.long
def test_links_that_do_not_fit_are_rejected(tall):
    model = compiled(tall, **ONE_OF_EACH)
    parts = read_container(next(iter(model.programs.values())))
    swapped = [*parts.calls[1:2], *parts.calls[:1], *parts.calls[2:]]
    for damaged, why in (
        ({"calls": swapped}, "before a part writes it"),
        ({"links": {}}, "compile it again"),
    ):
        with pytest.raises(DeviceError, match=why):
            model.device.load(write_container(replace(parts, **damaged)))
