"""Caches of 8-bit floats: requested by KV_CACHE_PRECISION, or as a quantized model rounds K and V.

The quantized model is a small Llama from NNCF, with the real OpenVINO's outputs;
``tools/make_fp8_goldens.py`` made the files.
"""

from __future__ import annotations

import json
import logging
import lzma
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import ask, caches_of
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.quantize import FakeConvert
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.state import Assign
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer.abi.float8 import E4M3, FORMATS, f8_to_f32
from npuw_layer import Core
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.graph.stored_float8 import common_rounding
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model

FILES = Path(__file__).parents[3] / "goldens" / "fp8"
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
}
RESOLVED = {"NPUW_LLM_OPTIMIZE_FP8": "YES"}
CHUNKS = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
TYPES = pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the IR that NNCF wrote."""
    folder = tmp_path_factory.mktemp("fp8")
    for file in FILES.glob("*.xz"):
        (folder / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    return folder / "openvino_model.xml"


@pytest.fixture(scope="module")
def said() -> Mapping[str, np.ndarray]:
    """Return prompts, and OpenVINO's logits for them in f32."""
    return dict(np.load(FILES / "llama.npz"))


def request_of(model: Path, **options: Any) -> Any:
    return Core().compile_model(model, "NPU", {**LENGTHS, **F32, **options}).create_infer_request()


def rows_of(request: Any) -> dict[str, np.ndarray]:
    return caches_of(request)


def hints(kind: str) -> dict[str, Any]:
    both = {f"NPUW_LLM_{stage}_ATTENTION_HINT": kind for stage in ("PREFILL", "GENERATE")}
    return CHUNKS | both | ({"NPUW_DEVICES": "NPU,CPU"} if kind == "DYNAMIC" else {})


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "resolved": RESOLVED,
    "variants": RESOLVED
    | {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "128,192", "NPUW_LLM_KV_SWITCHOVER": "COPY"},
    "blocks": RESOLVED | CHUNKS | {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "transposed values": RESOLVED | {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "prefixes": RESOLVED | CHUNKS | {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"},
    "HFA": RESOLVED | hints("HFA"),
    "DYNAMIC": RESOLVED | hints("DYNAMIC"),
    "interpreter": RESOLVED | {"NPUW_DEVICES": "CPU"},
    "the type it has anyway": RESOLVED | {"KV_CACHE_PRECISION": "f8e4m3"},
}


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
def test_a_quantised_models_logits_equal_openvinos(
    quantised: Path, said: Mapping[str, np.ndarray], way: str
) -> None:
    request = request_of(quantised, **WAYS[way])
    for count in (1, 7, 100):
        request.reset_state()
        found, expected = ask(request, said[f"prompt_{count}"]), said[f"logits_{count}"]
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    tokens = [int(found.argmax())]
    for past in range(100, 100 + len(said["greedy"]) - 1):
        found = ask(request, np.array([tokens[-1:]]), past)
        tokens.append(int(found.argmax()))
    assert tokens == said["greedy"].tolist()
    assert np.abs(found - said["logits_greedy"]).max() <= 1e-5 * np.abs(found).max()
    stored = {rows.dtype for rows in rows_of(request).values()}
    assert stored == {np.dtype(np.float32 if way == "as it is" else np.uint8)}


@pytest.mark.long
def test_resolved_rows_are_half_as_large_as_f16(quantised: Path) -> None:
    def nbytes(**options: Any) -> int:
        request = request_of(quantised, **(options | {"INFERENCE_PRECISION_HINT": "f16"}))
        ask(request, np.arange(10, 74)[None])
        return sum(rows.nbytes for rows in rows_of(request).values())

    assert nbytes() == 2 * nbytes(**RESOLVED) == 2 * nbytes(KV_CACHE_PRECISION="f8e5m2")


def behind_caches(model: Model) -> list[FakeConvert]:
    """Return the FakeConverts through which a complete cache is read."""
    rows = [each.assign.value for each in model.variables() if each.assign is not None]
    return [op for op in model.body.ops if isinstance(op, FakeConvert) and op.x in rows]


def test_resolved_fake_converts_are_removed(quantised: Path) -> None:
    model = read_model(quantised)
    assert len(behind_caches(model)) == 4
    assert common_rounding(model, "") == "f8e4m3"
    every = sum(isinstance(op, FakeConvert) for op in model.body.ops)
    options = parse_options({"NPUW_LLM_OPTIMIZE_FP8": "YES", "NPUW_LLM_SHARED_HEAD": "NO"})
    static = stage_graph(model, Stage(StageKind.GENERATE, 1, 63), options)
    assert sum(isinstance(op, FakeConvert) for op in static.body.ops) == every - 4


def rounding(model: Path, folder: Path) -> Path:
    """Write a model with a FakeConvert behind each cache, each with its own scale."""
    graph = read_model(model)
    for number, variable in enumerate(graph.variables()):
        assert variable.assign is not None
        rows = variable.assign.value
        assert isinstance(rows.owner, Operation)
        scale = Constant.inline(np.float32(40 + 7 * number))
        fake = FakeConvert.make([rows, scale.output, []], destination_type=StringAttr("f8e4m3"))
        Rewriter.insert_op([scale, fake], InsertPoint.after(rows.owner))
        for use in list(rows.uses):
            if use.operation is not fake and not isinstance(use.operation, Assign | ShapeOf):
                use.operation.operands[use.index] = fake.output
    write_ir(graph, folder / "openvino_model.xml")
    return folder / "openvino_model.xml"


@pytest.mark.matrix
@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_each_cache_has_its_own_scale(tiny: Path, tmp_path: Path, precision: str) -> None:
    model = rounding(tiny, tmp_path)
    ids = np.random.RandomState(3).randint(3, 90, (1, 101))
    options = {"INFERENCE_PRECISION_HINT": precision}
    anew, stored = request_of(model, **options), request_of(model, **RESOLVED, **options)
    for begin, end in ((0, 100), (100, 101)):
        a, b = (ask(request, ids[:, begin:end], begin) for request in (anew, stored))
        # A value rounded in the other direction differs by a step of 16; f16 has fewer scales.
        bound = {"f32": 1e-5, "f16": 2e-2}[precision]
        assert np.abs(a - b).max() <= bound * np.abs(a).max()


@pytest.mark.parametrize(
    ("scale", "shift"), [(np.float32(0), None), (np.ones((1, 1, 1, 8), np.float32), None), (2, 0.5)]
)
def test_unsupported_fake_converts_are_kept(
    tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, scale: Any, shift: Any
) -> None:
    """Models without a scale, with one per channel, and with a shift."""
    model = read_model(rounding(tiny, tmp_path))
    fake = behind_caches(model)[2]
    tables = [np.asarray(table, np.float32) for table in (scale, shift) if table is not None]
    constants = [Constant.inline(table) for table in tables]
    Rewriter.insert_op(constants, InsertPoint.before(fake))
    given = [one.output for one in constants]
    kind = fake.destination_type
    other = FakeConvert.make([fake.x, given[0], given[1:]], destination_type=kind)
    Rewriter.replace_op(fake, other)
    with caplog.at_level(logging.INFO):
        assert common_rounding(model, "") is None
    assert "is not read through one FakeConvert with a single scale and no shift" in caplog.text


def changed(xml: Path, folder: Path, *numbers: int) -> Path:
    """Change the type of some of the model's FakeConverts."""
    head, *parts = xml.read_text().split('<data destination_type="f8e4m3" />')
    kinds = ["f8e5m2" if number in numbers else "f8e4m3" for number in range(len(parts))]
    tails = (
        f'<data destination_type="{kind}" />{part}' for kind, part in zip(kinds, parts, strict=True)
    )
    (folder / xml.name).write_text(head + "".join(tails))
    (folder / "openvino_model.bin").symlink_to(xml.with_suffix(".bin"))
    return folder / xml.name


def test_fake_converts_of_several_types_are_kept(
    quantised: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = changed(quantised, tmp_path, 0)
    with caplog.at_level(logging.INFO):
        request = request_of(mixed, **RESOLVED)
    assert "its FakeConverts round to f8e4m3 and f8e5m2" in caplog.text
    ids = np.arange(10, 30)[None]
    assert np.array_equal(ask(request, ids), ask(request_of(mixed), ids))
    assert {rows.dtype for rows in rows_of(request).values()} == {np.dtype(np.float32)}


def test_a_model_without_fake_converts_is_stored_as_before(
    demo: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level(logging.INFO):
        request = request_of(demo, **RESOLVED)
    assert "the model has no FakeConvert" in caplog.text
    ask(request, np.arange(10, 30)[None])
    assert {rows.dtype for rows in rows_of(request).values()} == {np.dtype(np.float32)}
    request.save_state(tmp_path / "state")
    request_of(demo).load_state(tmp_path / "state")  # compatible with and without the option


def test_another_requested_type_is_stored(
    quantised: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        request = request_of(quantised, **RESOLVED, KV_CACHE_PRECISION="i8")
    assert "KV_CACHE_PRECISION is i8" in caplog.text
    ask(request, np.arange(10, 30)[None])
    assert np.dtype(np.int8) in {rows.dtype for rows in rows_of(request).values()}


@pytest.mark.matrix
@TYPES
def test_logits_stay_close_to_those_of_exact_caches(
    llama_8m: Path, llama_8m_goldens: Mapping[str, np.ndarray], kind: str
) -> None:
    found = ask(request_of(llama_8m, KV_CACHE_PRECISION=kind), llama_8m_goldens["prompt_100"])
    expected = llama_8m_goldens["hf_logits_100"]
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-4 < error < {"f8e4m3": 0.15, "f8e5m2": 0.25}[kind]


@pytest.mark.matrix
@TYPES
def test_rows_are_those_of_exact_caches_rounded(demo: Path, kind: str) -> None:
    """The first layer's rows depend on no cached rows."""
    ids = np.arange(10, 70)[None]
    plain, small = request_of(demo), request_of(demo, KV_CACHE_PRECISION=kind)
    ask(plain, ids)
    ask(small, ids)
    exact, rounded = rows_of(plain), rows_of(small)
    for name in (name for name in exact if ".0.key" in name or ".0.value" in name):
        assert rounded[name].dtype == np.uint8
        values = f8_to_f32(rounded[name], FORMATS[kind])
        step = {"f8e4m3": 2.0**-4, "f8e5m2": 2.0**-3}[kind]
        least = {"f8e4m3": 2.0**-10, "f8e5m2": 2.0**-17}[kind]
        assert np.all(np.abs(values - exact[name]) <= 1.01 * step * np.abs(exact[name]) + least)


@pytest.mark.matrix
@TYPES
def test_the_device_computes_what_the_graph_means(demo: Path, kind: str) -> None:
    ids = np.random.RandomState(3).randint(3, 2000, (1, 62))
    device = request_of(demo, KV_CACHE_PRECISION=kind)
    graph = request_of(demo, KV_CACHE_PRECISION=kind, NPUW_DEVICES="CPU")
    for begin, end in ((0, 60), (60, 61), (61, 62)):
        a, b = (ask(request, ids[:, begin:end], begin) for request in (device, graph))
        # A value rounded in the other direction differs by a step of 16.
        assert np.abs(a - b).max() <= 2e-2 * np.abs(b).max()


def test_values_out_of_range_are_clamped(demo: Path, tmp_path: Path) -> None:
    """A NaN would spoil all later results of attention."""
    request = request_of(large_keys(demo, tmp_path), KV_CACHE_PRECISION="f8e4m3")
    logits = ask(request, np.arange(10, 40)[None])
    assert np.isfinite(logits).all()
    keys = next(rows for name, rows in rows_of(request).items() if ".0.key" in name)
    assert np.abs(f8_to_f32(keys, E4M3)).max() == E4M3.limit


def large_keys(demo: Path, folder: Path, factor: float = 1000) -> Path:
    """Write the model with the keys of its first layer multiplied by a factor."""
    copy = Path(shutil.copytree(demo, folder / "demo"))
    file = copy / "model.safetensors"
    content = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    entry = json.loads(content[8:begin])["model.layers.0.self_attn.k_proj.weight"]
    assert entry["dtype"] == "F16"
    place = slice(*(begin + offset for offset in entry["data_offsets"]))
    values = np.frombuffer(content[place], np.float16)
    content[place] = (values * np.float16(factor)).tobytes()
    file.write_bytes(content)
    return copy
