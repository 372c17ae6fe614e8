"""NPUW_ACC_CHECK: comparison of a device with a reference, and the move of inaccurate submodels."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.openvino import OpenVINODevice
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Array, Device
from npuw_layer.errors import DeviceError
from npuw_layer.execution.devices import report
from npuw_layer.execution.devices.accuracy import nrmse
from npuw_layer.execution.devices.placed import Policy
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.tensors.names import EMBED, LOGITS, is_transposed
from npuw_layer.testing.check_device import CONFIG, small_graph

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
}

STATEFUL = {"prefill_64", "generate_128"}
"""All submodels except the LM head."""

RESULTS = (EMBED, LOGITS)
"""Outputs of submodels, except states."""


def npu() -> Device:
    return LevelZeroDevice(StaticCompiler(), "4000")


@pytest.fixture(scope="session")
def faulty(load_module: Callable[[Path], Any]) -> Any:
    return load_module(Path(__file__).parents[2] / "faulty_device.py").FaultyDevice


def answer(compiled: Any, tokens: int = 12) -> list[int]:
    """Return the greedy tokens after a prompt of 40."""
    request = compiled.create_infer_request()
    said: list[int] = []
    ids, past = np.arange(1, 41)[None], 0
    while len(said) < tokens:
        past += ids.shape[1]
        logits = request.infer(
            {
                "input_ids": ids,
                "attention_mask": np.ones((1, past), np.int64),
                "position_ids": np.arange(past - ids.shape[1], past)[None],
            }
        )["logits"]
        said.append(int(logits[0, -1].argmax()))
        ids = np.array([said[-1:]])
    return said


@pytest.fixture(scope="module")
def expected(tiny: Path) -> list[int]:
    return answer(Core(device=InterpreterDevice()).compile_model(tiny, "NPU", SMALL))


def placements(compiled: Any) -> dict[str, Any]:
    models = compiled._compiled.models.values()
    return {each.submodel: each for model in models for each in report.placements(model)}


def in_results(name: str, values: Array) -> None:
    """Spoil hidden states or logits; here and below of the first token, not of padding."""
    if name in RESULTS:
        values.reshape(-1)[:30] += 4


def in_a_state(name: str, values: Array) -> None:
    if name.startswith(ASSIGN_PREFIX) and "value" in name:
        values[0, 0] += 2


def not_a_number(name: str, values: Array) -> None:
    if name in RESULTS:
        values.reshape(-1)[7] = np.nan


def one_huge_number(name: str, values: Array) -> None:
    if name in RESULTS:
        values.reshape(-1)[7] = 1e30


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("spoil", "wrong_submodels", "reference"),
    [
        (in_results, {*STATEFUL, "lm_head"}, "CPU"),
        (in_a_state, STATEFUL, "OPENVINO_CPU"),
        (not_a_number, {*STATEFUL, "lm_head"}, "CPU"),
        (one_huge_number, {*STATEFUL, "lm_head"}, "OPENVINO_CPU"),
    ],
)
def test_inaccurate_submodels_move_to_the_reference_device_permanently(
    tiny: Path,
    expected: list[int],
    faulty: Any,
    spoil: Callable[[str, Array], None],
    wrong_submodels: set[str],
    reference: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = faulty(npu(), spoil)
    made = {"CPU": InterpreterDevice, "OPENVINO_CPU": OpenVINODevice}[reference]
    device = SeveralDevices({"NPU": lambda: wrong}, Policy(reference=reference), made)
    compiled = Core(device=device).compile_model(tiny, "NPU", SMALL)
    right_submodels = {*STATEFUL, "lm_head"} - wrong_submodels
    for turn in (1, 2):
        assert answer(compiled) == expected
        runs = len(wrong_submodels) + turn * len(expected) * len(right_submodels)
        assert wrong.runs == runs, "inaccurate submodels ran once on the faulty device"
    devices = {name: each.device for name, each in placements(compiled).items()}
    assert devices == dict.fromkeys(wrong_submodels, reference) | dict.fromkeys(
        right_submodels, "NPU"
    )
    (line,) = [line for line in caplog.messages if "prefill" in line and "NRMSE" in line]
    assert "NPU is inaccurate: NRMSE of" in line
    assert "above 0.01" in line


def test_an_error_of_a_later_run_is_found(tiny: Path, expected: list[int], faulty: Any) -> None:
    wrong = faulty(npu())

    def spoil(name: str, values: Array) -> None:
        if wrong.runs > 10:
            in_results(name, values)

    wrong.spoil = spoil
    device = SeveralDevices({"NPU": lambda: wrong}, Policy(reference="CPU"), InterpreterDevice)
    compiled = Core(device=device).compile_model(tiny, "NPU", SMALL)
    assert answer(compiled) == expected
    found = placements(compiled)
    assert found["prefill_64"].device == "NPU"
    assert found["generate_128"].device == "CPU"
    # Prefill and LM head run first, then generate and LM head in turn: the eleventh run is the
    # fifth of generate, the next one the sixth of the LM head.
    assert found["generate_128"].accuracy.startswith("5 runs checked")
    assert found["lm_head"].accuracy.startswith("6 runs checked")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("precision", "reference"),
    [("f32", "CPU"), ("f16", "OPENVINO_CPU"), ("bf16", "CPU"), ("bf16", "OPENVINO_CPU")],
)
def test_accurate_submodels_do_not_move(tiny: Path, precision: str, reference: str) -> None:
    """The prompt does not fill prefill: devices differ in results of padding."""
    options = {
        "INFERENCE_PRECISION_HINT": precision,
        "NPUW_ACC_CHECK": "YES",
        "NPUW_ACC_DEVICE": reference,
        "NPUW_ACC_THRESH": 0.03 if precision == "bf16" else 0.01,
    }
    compiled = Core().compile_model(tiny, "NPU", SMALL | options)
    answer(compiled)
    found = placements(compiled)
    assert {each.device for each in found.values()} == {"NPU"}
    assert "1 runs checked, largest NRMSE" in found["prefill_64"].accuracy
    assert "11 runs checked, largest NRMSE" in found["generate_128"].accuracy
    assert "12 runs checked, largest NRMSE" in found["lm_head"].accuracy


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("shared_head", "transposed", "result"),
    [("YES", "NO", EMBED), ("NO", "NO", LOGITS), ("YES", "YES", EMBED)],
)
def test_results_of_padding_are_not_compared(
    tiny: Path, faulty: Any, shared_head: str, transposed: str, result: str
) -> None:
    """Prefill reads 40 tokens of 64, generate 3 of 8; all other rows are undefined."""
    options = {
        "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
        "NPUW_LLM_SHARED_HEAD": shared_head,
        "NPUW_LLM_OPTIMIZE_V_TENSORS": transposed,
    }
    spoiled: set[tuple[str, int]] = set()

    def spoil(name: str, values: Array) -> None:
        rows = np.moveaxis(values, -1, 1) if is_transposed(name) else values
        used = {64: 40, 8: 3}.get(rows.shape[1])
        if used is not None and (name == result or name.startswith(ASSIGN_PREFIX)):
            rows[0, used:] = np.nan
            spoiled.add((name, used))

    found: list[Array] = []
    for spoils in (None, spoil):
        wrong = faulty(npu(), spoils)
        device = SeveralDevices(
            {"NPU": lambda wrong=wrong: wrong}, Policy(reference="CPU"), InterpreterDevice
        )
        compiled = Core(device=device).compile_model(tiny, "NPU", SMALL | options)
        request = compiled.create_infer_request()
        for past, count in ((0, 40), (40, 3), (43, 3)):
            inputs = {
                "input_ids": np.arange(1, count + 1)[None],
                "attention_mask": np.ones((1, past + count), np.int64),
                "position_ids": np.arange(past, past + count)[None],
            }
            found.append(request.infer(inputs)["logits"][0, -1].copy())
        assert {each.device for each in placements(compiled).values()} == {"NPU"}
    assert (result, 3) in spoiled
    assert np.array_equal(found[:3], found[3:])


@pytest.mark.long
def test_quantised_caches_are_compared(tiny: Path, faulty: Any) -> None:
    def spoil(name: str, values: Array) -> None:
        if name.startswith(ASSIGN_PREFIX) and values.dtype == np.int8:
            values[0, 0] = 0

    options = {"KV_CACHE_PRECISION": "i8"}
    for spoiled, device_name in ((None, "NPU"), (spoil, "CPU")):
        wrong = faulty(npu(), spoiled)
        device = SeveralDevices(
            {"NPU": lambda wrong=wrong: wrong}, Policy(reference="CPU"), InterpreterDevice
        )
        compiled = Core(device=device).compile_model(tiny, "NPU", SMALL | options)
        answer(compiled)
        devices = {name: each.device for name, each in placements(compiled).items()}
        assert devices == dict.fromkeys(STATEFUL, device_name) | {"lm_head": "NPU"}


def test_a_state_may_be_written_in_place() -> None:
    """The reference reads the state before the device overwrites it."""
    device = SeveralDevices({"NPU": npu}, Policy(reference="CPU"), InterpreterDevice)
    loaded = device.load(device.compile(small_graph(), CONFIG))
    program = loaded.create_program()
    memory = {info.name: device.allocate(256) for info in (*loaded.inputs, *loaded.outputs)}
    memory[ASSIGN_PREFIX + "sum"] = memory[READ_PREFIX + "sum"]
    for name, each in memory.items():
        program.bind(name, each, 0)
    memory["x"].data.view(np.float32)[:] = 1
    for step in (1, 2, 3):
        program.run()
        assert (memory[READ_PREFIX + "sum"].data.view(np.float32) == step).all()
    assert loaded.placement.device == "NPU"


@pytest.mark.long
def test_errors_below_the_threshold_are_accepted(tiny: Path, faulty: Any) -> None:
    def spoil(name: str, values: Array) -> None:
        if name in RESULTS:
            values *= 1.02

    for threshold, device_name in ((0.05, "NPU"), (0.001, "CPU")):
        wrong = faulty(npu(), spoil)
        device = SeveralDevices(
            {"NPU": lambda wrong=wrong: wrong},
            Policy(reference="CPU", threshold=threshold),
            InterpreterDevice,
        )
        compiled = Core(device=device).compile_model(tiny, "NPU", SMALL)
        answer(compiled)
        assert {each.device for each in placements(compiled).values()} == {device_name}


def test_a_missing_reference_is_an_error(tiny: Path, faulty: Any) -> None:
    def no_reference() -> Any:
        return faulty(InterpreterDevice(), refuses="out of paper")

    device = SeveralDevices({"NPU": npu}, Policy(reference="CPU"), no_reference)
    with pytest.raises(DeviceError, match=r"NPUW_ACC_CHECK: prefill_64 .* CPU: out of paper"):
        Core(device=device).compile_model(tiny, "NPU", SMALL)


def test_a_failure_of_the_reference_is_reported_as_such(tiny: Path, faulty: Any) -> None:
    def lost() -> Any:
        return faulty(InterpreterDevice(), good_runs=3)

    makers = {"NPU": npu, "OPENVINO_CPU": OpenVINODevice}
    device = SeveralDevices(makers, Policy(reference="CPU"), lost)
    compiled = Core(device=device).compile_model(tiny, "NPU", SMALL)
    with pytest.raises(DeviceError, match="NPUW_ACC_DEVICE CPU failed"):
        answer(compiled)
    assert {each.device for each in placements(compiled).values()} == {"NPU"}


NUMBERS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40)


def test_nrmse_of_one_huge_number_among_many_is_huge() -> None:
    """Relative to the range of found values, as NPUW defines it, the error would be 0.003."""
    expected = np.ones(100_000, np.float32)
    found = expected.copy()
    found[7] = 1e30
    assert nrmse(found, expected) > 1e20


@given(NUMBERS)
def test_nrmse_of_equal_values_is_zero(values: list[float]) -> None:
    array = np.array(values, np.float32)
    assert nrmse(array, array.copy()) == 0


@given(NUMBERS, st.sampled_from([math.nan, math.inf, -math.inf]), st.data())
def test_nrmse_of_non_finite_values_is_infinite(
    values: list[float], strange: float, data: st.DataObject
) -> None:
    array = np.array(values, np.float32)
    spoiled = array.copy()
    spoiled[data.draw(st.integers(0, len(values) - 1))] = strange
    assert nrmse(spoiled, array) == math.inf
    assert nrmse(array, spoiled) == math.inf
    assert nrmse(spoiled, spoiled.copy()) == 0
    assert nrmse(-spoiled, spoiled) == math.inf or math.isnan(strange)


@given(NUMBERS, st.floats(-1e6, 1e6, width=32))
def test_nrmse_is_relative_to_the_expected_range(values: list[float], offset: float) -> None:
    array = np.array(values, np.float64)
    span = max(max(values), 0) - min(min(values), 0)
    error = abs(offset) / max(span, 1e-3)
    assert nrmse(array + offset, array) == pytest.approx(error, rel=1e-6, abs=1e-12)
