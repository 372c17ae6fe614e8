"""NPUW_DEVICES: several devices in order, and the choice among them for each submodel."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.splitting import split

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_memory import DeviceMemory
from npuw_layer.backends.openvino import OpenVINODevice
from npuw_layer.backends.protocols import SUBMODEL, Device
from npuw_layer.errors import DeviceError, ModelError, OptionError
from npuw_layer.execution.devices.make import make_device
from npuw_layer.execution.devices.placed import Policy
from npuw_layer.execution.devices.report import Placement, placements
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.execution.devices.stored import StoredHeader, StoredProgram
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.testing.check_device import CONFIG, small_graph

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "96",
}
"""Submodels: prefill, two generate variants and the shared LM head."""

SUBMODELS = ["prefill_64", "generate_96", "generate_128", "lm_head"]


def npu() -> Device:
    return LevelZeroDevice(StaticCompiler(), "4000")


@pytest.fixture(scope="session")
def faulty(load_module: Callable[[Path], Any]) -> Any:
    return load_module(Path(__file__).parents[2] / "faulty_device.py").FaultyDevice


class Chat:
    """A greedy conversation."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self._request = compiled.create_infer_request()
        self._said = 0

    def tell(self, ids: list[int]) -> np.ndarray:
        inputs = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, self._said + len(ids)), np.int64),
            "position_ids": np.arange(self._said, self._said + len(ids))[None],
        }
        self._said += len(ids)
        return self._request.infer(inputs)["logits"][0, -1].copy()

    def say(self, tokens: int) -> list[int]:
        """Return the greedy answer to a fixed prompt."""
        said = [int(self.tell(list(range(1, 20))).argmax())]
        while len(said) < tokens:
            said.append(int(self.tell(said[-1:]).argmax()))
        return said

    @property
    def report(self) -> dict[str, str]:
        return dict(self._request.execution_report())

    @property
    def placed(self) -> dict[str, str]:
        return {each.submodel: each.device for each in in_use(self.compiled)}

    @property
    def notes(self) -> str:
        return "; ".join(map(str, in_use(self.compiled)))


def in_use(compiled: Any) -> list[Placement]:
    found = [each for model in compiled._compiled.models.values() for each in placements(model)]
    return sorted(found, key=lambda placement: placement.submodel)


def chat(folder: Path, device: Device | None = None, **options: Any) -> Chat:
    return Chat(Core(device=device).compile_model(folder, "NPU", SMALL | options))


@pytest.fixture(scope="module")
def answer(tiny: Path) -> list[int]:
    """Return the interpreter's answer: 80 tokens, through both generate variants."""
    return chat(tiny, NPUW_DEVICES="CPU").say(80)


def test_each_submodel_goes_to_the_first_device(tiny: Path, answer: list[int]) -> None:
    talk = chat(tiny, NPUW_DEVICES="NPU,CPU")
    assert talk.placed == dict.fromkeys(SUBMODELS, "NPU")
    assert {talk.report[f"device of {name}"] for name in SUBMODELS} == {"NPU"}
    assert talk.compiled.get_property("EXECUTION_DEVICES") == ["NPU"]
    assert talk.say(80) == answer


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        ("0:CPU,last:OPENVINO_CPU", ["CPU", "NPU", "NPU", "OPENVINO_CPU"]),
        ("prefill:OPENVINO_CPU,generate:CPU", ["OPENVINO_CPU", "CPU", "CPU", "NPU"]),
        ("generate:CPU,generate_96:NPU", ["NPU", "NPU", "CPU", "NPU"]),
        ("1:OPENVINO_CPU,head:CPU", ["NPU", "OPENVINO_CPU", "NPU", "CPU"]),
    ],
)
def test_submodels_are_pinned_in_any_mix(
    tiny: Path, answer: list[int], pins: str, expected: list[str]
) -> None:
    talk = chat(tiny, NPUW_DEVICES="NPU,CPU,OPENVINO_CPU", NPUW_SUBMODEL_DEVICE=pins)
    assert talk.placed == dict(zip(SUBMODELS, expected, strict=True))
    assert set(talk.compiled.get_property("EXECUTION_DEVICES")) == set(expected)
    assert talk.say(80) == answer


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("devices", "kv"),
    [("NPU", ""), ("NPU", "i8"), ("CPU", "i8"), ("OPENVINO_CPU", ""), ("NPU,CPU", "i8")],
)
def test_new_rows_may_overwrite_masked_rows(tiny: Path, devices: str, kv: str) -> None:
    """The second of four chunks reads 48 rows, of which the mask hides 32, and writes the next."""
    options = {
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
        "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC",
        "KV_CACHE_PRECISION": kv,
    }
    said: list[np.ndarray] = []
    for switchover in ("COPY", "ZERO_COPY"):
        talk = chat(tiny, NPUW_DEVICES=devices, NPUW_LLM_KV_SWITCHOVER=switchover, **options)
        said.append(talk.tell(list(range(1, 64))))
        assert (talk.report["KV copied"] == "0 bytes") == (switchover == "ZERO_COPY")
        said.append(talk.tell([5]))
    assert np.array_equal(said[:2], said[2:])


def test_submodels_that_a_device_cannot_compile_go_to_the_next_with_the_reason(
    tiny: Path, answer: list[int], faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    makers = {"NPU": lambda: faulty(npu(), refuses="no tile is free"), "CPU": InterpreterDevice}
    talk = chat(tiny, SeveralDevices(makers))
    assert talk.placed == dict.fromkeys(SUBMODELS, "CPU")
    assert talk.notes.count("NPU cannot compile it: no tile is free") == len(SUBMODELS)
    assert "generate_96: NPU cannot compile it: no tile is free" in caplog.messages
    assert talk.say(80) == answer


def test_submodels_that_a_device_cannot_load_go_to_the_next_with_the_reason(
    tiny: Path, answer: list[int], faulty: Any
) -> None:
    makers = {"NPU": lambda: faulty(npu(), loads=False), "OPENVINO_CPU": OpenVINODevice}
    talk = chat(tiny, SeveralDevices(makers))
    assert talk.placed == dict.fromkeys(SUBMODELS, "OPENVINO_CPU")
    assert "NPU cannot load it: out of device memory" in talk.notes
    assert talk.say(80) == answer


def test_the_error_of_compilation_has_the_reason_of_each_device(faulty: Any) -> None:
    makers = {
        "NPU": lambda: faulty(npu(), refuses="no tile is free"),
        "CPU": lambda: faulty(InterpreterDevice(), refuses="out of paper"),
    }
    with pytest.raises(ModelError) as caught:
        SeveralDevices(makers).compile(small_graph(), {**CONFIG, SUBMODEL: "generate_96"})
    assert str(caught.value) == (
        "no device of NPUW_DEVICES can compile generate_96: NPU cannot compile it: no tile is free"
        "; CPU cannot compile it: out of paper"
    )


def test_an_unavailable_device_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, answer: list[int]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openvino", None)
    talk = chat(tiny, NPUW_DEVICES="OPENVINO_CPU,CPU")
    assert talk.placed == dict.fromkeys(SUBMODELS, "CPU")
    assert "pip install openvino" in talk.notes
    assert talk.say(80) == answer
    with pytest.raises(DeviceError, match="pip install openvino"):
        chat(tiny, NPUW_DEVICES="OPENVINO_CPU")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("good_runs", "first"), [(0, "NPU"), (1, "CPU"), (5, "NPU"), (40, "CPU"), (40, "NPU")]
)
def test_the_next_device_takes_over_from_a_lost_device_during_a_conversation(
    tiny: Path, answer: list[int], faulty: Any, good_runs: int, first: str
) -> None:
    inner, other = (npu, OpenVINODevice) if first == "NPU" else (InterpreterDevice, npu)
    lost = faulty(inner(), good_runs=good_runs)
    talk = chat(tiny, SeveralDevices({"first": lambda: lost, "second": other}))
    assert set(talk.placed.values()) == {"first"}
    assert talk.say(80) == answer
    assert lost.runs == good_runs
    assert "first failed: ZE_RESULT_ERROR_DEVICE_LOST" in talk.notes
    moved = [line for name, line in talk.report.items() if name.startswith("device of ")]
    assert any("second; first failed: ZE_RESULT_ERROR_DEVICE_LOST" in line for line in moved)
    assert "second" in talk.placed.values()


def test_all_requests_follow_a_submodel_that_moved(
    tiny: Path, answer: list[int], faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lost = faulty(npu(), good_runs=30)
    one = chat(tiny, SeveralDevices({"NPU": lambda: lost, "CPU": InterpreterDevice}))
    two = Chat(one.compiled)
    assert one.say(80) == answer
    assert two.say(80) == answer
    assert Chat(one.compiled).say(80) == answer
    moved = [line for line in caplog.messages if "takes it over" in line]
    assert len(moved) == len(SUBMODELS), moved


def test_without_fallback_the_error_of_the_device_is_raised(tiny: Path, faulty: Any) -> None:
    lost = faulty(npu(), good_runs=3)
    makers = {"NPU": lambda: lost, "CPU": InterpreterDevice}
    talk = chat(tiny, SeveralDevices(makers, Policy(fallback=False)))
    with pytest.raises(DeviceError, match="DEVICE_LOST"):
        talk.say(80)


def test_the_error_of_lost_devices_has_the_reason_of_each(tiny: Path, faulty: Any) -> None:
    makers = {
        "NPU": lambda: faulty(npu(), good_runs=3),
        "CPU": lambda: faulty(InterpreterDevice(), good_runs=2),
    }
    with pytest.raises(DeviceError, match=r"NPU failed: .*LOST; CPU failed: .*LOST"):
        chat(tiny, SeveralDevices(makers)).say(80)


class NoPrograms(InterpreterDevice):
    """A device that loads all programs, and has no memory to run any."""

    def load(self, program: bytes | memoryview) -> Any:
        loaded = super().load(program)

        def refuse() -> None:
            raise DeviceError("no room for another program")

        loaded.create_program = refuse  # type: ignore[method-assign, assignment]
        return loaded


def test_a_device_without_memory_for_a_program_passes_it_to_the_next(
    tiny: Path, answer: list[int], faulty: Any
) -> None:
    lost = faulty(npu(), good_runs=5)
    makers = {"NPU": lambda: lost, "full": NoPrograms, "CPU": InterpreterDevice}
    talk = chat(tiny, SeveralDevices(makers))
    assert talk.say(80) == answer
    assert "full failed: no room for another program" in talk.notes
    assert set(talk.placed.values()) <= {"NPU", "CPU"}


def test_requests_share_the_weights_that_another_device_needs(tiny: Path, faulty: Any) -> None:
    """Weights are converted to f16 once, and the graph is compiled once."""
    lost = faulty(InterpreterDevice(), good_runs=0)  # its programs have no weights to bind
    makers = {"CPU": lambda: lost, "OPENVINO_CPU": OpenVINODevice}
    one = chat(tiny, SeveralDevices(makers), INFERENCE_PRECISION_HINT="f16")
    two = Chat(one.compiled)
    assert one.say(3) == two.say(3)
    moved = [placed.place for placed in one.compiled._compiled.models.values()]
    graphs = [len(place.loaded._compiled) for place in moved if place.device == "OPENVINO_CPU"]
    assert graphs == [1, 1, 1], "prefill, the smaller variant and the LM head"


def test_missing_weight_files_are_an_error_of_the_device(tiny: Path, tmp_path) -> None:
    copy = shutil.copytree(tiny, tmp_path / "copy")
    talk = chat(copy, NPUW_DEVICES="CPU")
    (copy / "model.safetensors").unlink()
    with pytest.raises(DeviceError, match=r"the interpreter failed: .*model\.safetensors"):
        talk.say(1)


def test_unbound_tensors_do_not_move_a_submodel(faulty: Any) -> None:
    device = SeveralDevices({"NPU": npu, "CPU": InterpreterDevice})
    loaded = device.load(device.compile(small_graph(), CONFIG))
    with pytest.raises(DeviceError, match="the model: not bound: x, vpux_ie_read_value_sum, y"):
        loaded.create_program().run()
    assert loaded.placement.device == "NPU"


def test_only_one_device_may_need_its_own_memory() -> None:
    makers = {"CPU": InterpreterDevice, "OPENVINO_CPU": OpenVINODevice, "NPU": npu}
    assert isinstance(SeveralDevices(makers).allocate(64), DeviceMemory)
    del makers["NPU"]
    assert not isinstance(SeveralDevices(makers).allocate(64), DeviceMemory)
    with pytest.raises(DeviceError, match="NPU and NPU2 each need their own memory"):
        SeveralDevices({"NPU": npu, "NPU2": npu})


@pytest.mark.long
def test_the_cache_stores_the_device_and_the_graph(
    tiny: Path, answer: list[int], faulty: Any, tmp_path: Path
) -> None:
    options = {"CACHE_DIR": str(tmp_path), "NPUW_DEVICES": "NPU,CPU", "NPUW_ACC_CHECK": "NO"}
    pinned = options | {"NPUW_SUBMODEL_DEVICE": "last:CPU"}
    assert chat(tiny, **options).say(80) == answer
    assert chat(tiny, **pinned).placed["lm_head"] == "CPU"
    warm = chat(tiny, **pinned)
    assert warm.compiled.get_property("LOADED_FROM_CACHE")
    assert warm.placed["lm_head"] == "CPU"
    assert warm.say(80) == answer
    again = chat(tiny, **options)
    assert again.compiled.get_property("LOADED_FROM_CACHE")
    assert again.placed["lm_head"] == "NPU"
    # Cached submodels can still move, and be checked.
    lost = faulty(npu(), good_runs=5)
    makers = {"NPU": lambda: lost, "CPU": InterpreterDevice}
    cold, warm = (chat(tiny, SeveralDevices(makers), **options) for _ in range(2))
    assert warm.compiled.get_property("LOADED_FROM_CACHE")
    assert warm.say(80) == answer
    assert "DEVICE_LOST" in warm.notes
    del cold


def test_a_graph_without_its_weight_files_is_rejected(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "moved")
    graph = split(read_model(folder), 1, 63)
    plain, several = InterpreterDevice(), SeveralDevices({"CPU": InterpreterDevice, "NPU": npu})
    programs = [(device, device.compile(graph.clone(), CONFIG)) for device in (plain, several)]
    (folder / "model.safetensors").unlink()
    for device, program in programs:
        with pytest.raises(DeviceError, match="weights cannot be read"):
            device.load(program)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "NPUW_DEVICES",
            "NPU,npu",
            "'npu' is not installed; use CPU, NPU, OPENVINO_CPU; did you mean",
        ),
        ("NPUW_DEVICES", "OPENVINO", "did you mean OPENVINO_CPU?"),
        ("NPUW_DEVICES", "", "name each device once"),
        ("NPUW_DEVICES", "CPU,NPU,CPU", "name each device once"),
        ("NPUW_ACC_DEVICE", "GPU", "NPUW_ACC_DEVICE = 'GPU' is not installed; use"),
        ("NPUW_ACC_THRESH", "-1", "NPUW_ACC_THRESH"),
        ("NPUW_ACC_THRESH", "nan", "NPUW_ACC_THRESH"),
        ("NPUW_FALLBACK_EXEC", "MAYBE", "NPUW_FALLBACK_EXEC"),
    ],
)
def test_a_wrong_option_lists_the_valid_values(option: str, value: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_device(parse_options({option: value, "NPUW_ACC_CHECK": "YES"}), SUBMODELS, None)
    assert message in str(caught.value)


def test_a_stored_program_is_read_in_place() -> None:
    head = StoredHeader(submodel="prefill_64", device="NPU", config={"A": "B"}, notes=("because",))
    data = StoredProgram(head, b"program" * 99, zlib.compress(b"a graph", 1)).to_bytes()
    found = StoredProgram.parse(memoryview(data))
    assert found.head == head
    assert bytes(found.program) == b"program" * 99
    assert isinstance(found.program, memoryview)
    assert found.program.obj is data
    assert found.graph_text() == "a graph"


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_stored_program_is_rejected(seed: int) -> None:
    """Damage may be anywhere in the frame; the device verifies its own program."""
    device = SeveralDevices({"CPU": InterpreterDevice, "NPU": npu})
    good = bytearray(device.compile(small_graph(), CONFIG))
    draw = np.random.default_rng(seed)
    for _ in range(40):
        bad = bytearray(good)
        for at in draw.integers(len(good) - 400, len(good), 3):
            bad[at] ^= int(draw.integers(1, 256))
        try:
            device.load(bytes(bad))
        except DeviceError:
            continue
