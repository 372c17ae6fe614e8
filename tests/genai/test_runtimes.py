"""Runtime interface: the in-memory runtime and the real OpenVINO pass the same checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from genai_layer import PropertyError
from genai_layer.adapters.openvino import load_core
from genai_layer.runtime import CompiledModel
from genai_layer.runtimes import load_core as load_runtime
from genai_layer.testing.check_runtime import (
    CHECKS,
    check_runtime,
    check_steps_of_several_tokens,
)
from genai_layer.testing.memory_runtime import MemoryCompiledModel, MemoryRequest

TOKENS = [5, 9, 13, 7, 21, 30]
TABLE = np.random.default_rng(3).standard_normal((300, 300)).astype(np.float32)


LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


def memory() -> MemoryCompiledModel:
    return MemoryCompiledModel(TABLE, capacity=1000)


def forgetting(policy: str) -> MemoryCompiledModel:
    return MemoryCompiledModel(TABLE, 128, LENGTHS | {"NPUW_LLM_ON_FULL": policy})


@pytest.fixture(scope="module")
def openvino_model(llama_8m_ir: Path) -> CompiledModel:
    """IR of the exporter on the real OpenVINO; in f32, as its KV cache is otherwise compressed."""
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    return load_core().compile_model(llama_8m_ir, "CPU", exact)


EVERY_CHECK = (*CHECKS, check_steps_of_several_tokens)


@pytest.mark.parametrize("check", EVERY_CHECK, ids=lambda check: check.__name__)
def test_the_memory_runtime_passes_each_check(check) -> None:
    check(memory(), TOKENS, 1e-6)


@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_a_memory_runtime_that_forgets_passes_all_checks(policy: str) -> None:
    check_runtime(lambda: forgetting(policy), TOKENS, 1e-6)


@pytest.mark.parametrize("check", EVERY_CHECK, ids=lambda check: check.__name__)
def test_the_real_openvino_passes_each_check(openvino_model: CompiledModel, check) -> None:
    check(openvino_model, TOKENS, 1e-4)


def test_the_memory_runtime_passes_all_checks() -> None:
    check_runtime(memory, TOKENS)


def test_a_device_whose_package_is_not_installed_names_the_extra(monkeypatch) -> None:
    for package in ("openvino", "npuw_layer"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(PropertyError, match=r"npuw_layer is not installed; .*genai_layer\[npu\]"):
        load_runtime("NPU")
    with pytest.raises(
        PropertyError, match=r"openvino is not installed; .*genai_layer\[openvino\]"
    ):
        load_runtime("CPU")
    with pytest.raises(PropertyError, match=r"available: none; pip install 'genai_layer\[npu\]'"):
        load_runtime("GPU")


class Forgetful(MemoryRequest):
    """Request without memory between inferences."""

    def infer(self, inputs, /):
        result = super().infer(inputs)
        self._state.rows = [[0] * len(row) for row in self._state.rows]
        return result


class Clinging(MemoryRequest):
    """Request whose reset keeps a trace of the last conversation."""

    def reset_state(self) -> None:
        super().reset_state()
        self._table = self._table + np.float32(1)


class Sharing(MemoryRequest):
    """Request that shares its state with all others."""

    def __init__(self, table, capacity) -> None:
        super().__init__(table, capacity)
        self._state = Sharing.state = getattr(Sharing, "state", self._state)


class Unordered(MemoryRequest):
    """Request that ignores ``beam_idx`` once there are several rows."""

    def infer(self, inputs, /):
        rows = len(self._state.rows)
        if rows > 1:
            inputs = inputs | {"beam_idx": np.arange(len(inputs["input_ids"]), dtype=np.int32)}
        return super().infer(inputs)


@pytest.mark.parametrize("broken", [Forgetful, Clinging, Sharing, Unordered])
def test_the_checks_find_broken_runtimes(broken: type[MemoryRequest]) -> None:
    class Compiled:
        def create_infer_request(self) -> MemoryRequest:
            return broken(TABLE, 1000)

    with pytest.raises((AssertionError, RuntimeError)):
        check_runtime(Compiled, TOKENS, 1e-6)


@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_the_checks_find_a_runtime_that_reports_a_policy_and_ignores_it(policy: str) -> None:
    class Full(MemoryCompiledModel):
        def create_infer_request(self) -> MemoryRequest:
            return MemoryRequest(TABLE, 128)

    compiled = Full(TABLE, 128, LENGTHS | {"NPUW_LLM_ON_FULL": policy})
    with pytest.raises(RuntimeError, match="exceed the capacity"):
        check_runtime(lambda: compiled, TOKENS, 1e-6)


def test_openvino_rejects_weights_without_an_ir(llama_8m: Path) -> None:
    with pytest.raises(PropertyError, match="export the model with optimum-cli"):
        load_core().compile_model(llama_8m, "CPU", {})


def test_signals_are_handled_when_another_thread_drops_openvino(llama_8m_ir: Path) -> None:
    """Unloading the CPU plugin in that thread would make the next signal end the process."""
    program = """if True:
        import signal, sys, threading
        from genai_layer.adapters.openvino import load_core
        core = load_core()
        held = [core, core.compile_model(sys.argv[1], "CPU", {})]
        del core
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        signal.signal(signal.SIGINT, lambda *_: print("handled"))
        signal.raise_signal(signal.SIGINT)
    """
    command = [sys.executable, "-c", program, str(llama_8m_ir)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr
