"""Models for the tests of several layers, and reference outputs of other implementations."""

from __future__ import annotations

import base64
import fcntl
import gc
import hashlib
import importlib.util
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from hypothesis import settings
from tests.compiled_once import stages_compiled_once
from tests.signal_stack import use_own_signal_stack

from compiler_layer import compile as to_blob
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.schedule.check import check_ddr, check_schedule
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.place_ddr import touches
from driver_layer.engines.native.jit.cache import ObjectCache

settings.register_profile("untimed", max_examples=25, deadline=None)  # machines may be busy
settings.load_profile("untimed")

os.environ["ZE_INTEL_NPU_CACHE_DIR"] = ""
"""Disables the driver's cache of compiled graphs, for child processes, too: tests compile."""

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ROOT / "tests" / "goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--quick``, which ``make test`` sets."""
    parser.addoption(
        "--quick", action="store_true", help="run the first case of each matrix, and no long test"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under ``--quick``, deselect long tests and all but the first case of each matrix."""
    if not config.getoption("--quick"):
        return
    seen: set[str] = set()
    left_out: list[pytest.Item] = []
    for item in items:
        function = item.nodeid.partition("[")[0]
        repeated = item.get_closest_marker("matrix") is not None and function in seen
        seen.add(function)
        if repeated or item.get_closest_marker("long") is not None:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Restore the signal stack, which earlier tests may have unmapped with OpenVINO's cores."""
    use_own_signal_stack()


@pytest.fixture(scope="session")
def load_module() -> Callable[[Path], Any]:
    """Import a file that belongs to no package: a tool, or a part of the tests."""

    def load(path: Path) -> Any:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module  # dataclasses look their module up there
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of this run of the tests, the same for all its processes."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def once(shared_folder: Path) -> Callable[[str, Callable[[], Any]], Any]:
    """Return a function that computes a value for JSON once in this run, for all its processes."""

    def give(name: str, compute: Callable[[], Any]) -> Any:
        path = shared_folder / f"{name}.json"
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(json.dumps(compute()))
        return json.loads(path.read_text())

    return give


@pytest.fixture(scope="session")
def kernel_cache(shared_folder: Path) -> ObjectCache:
    """Cache of native kernels, empty when the run begins: each kernel is compiled once."""
    return ObjectCache(shared_folder / "kernels")


@pytest.fixture(scope="session")
def llama_8m(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hugging Face folder of llama-8m."""
    return load_module(GOLDENS / "llama_8m.py").write_folder(tmp_path_factory.mktemp("llama_8m"))


@pytest.fixture(scope="session")
def demo() -> Path:
    """Hugging Face folder of the demo model."""
    return ROOT / "models" / "demo"


@pytest.fixture(scope="session")
def llama_8m_ir(llama_8m: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """IR of llama-8m, written by the real exporter."""
    return restore_ir("llama_8m", llama_8m, tmp_path_factory.mktemp("llama_8m_ir"))


@pytest.fixture(scope="session")
def demo_ir(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """IR of the demo model, written by the real exporter."""
    return restore_ir("demo", demo, tmp_path_factory.mktemp("demo_ir"))


@pytest.fixture(scope="session")
def restored(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path, str], Path]:
    """Return a function that restores an exported IR by golden folder and name, each once."""
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    known: dict[tuple[Path, str], Path] = {}

    def give(folder: Path, name: str) -> Path:
        if (folder, name) not in known:
            known[folder, name] = restore(folder, name, tmp_path_factory.mktemp(name))
        return known[folder, name]

    return give


@pytest.fixture(scope="session")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of stateful ONNX decoders: each as IR, some also as ONNX."""
    folder = tmp_path_factory.mktemp("stateful_gqa")
    for file in (GOLDENS / "stateful_gqa").glob("*.xz"):
        (folder / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    return folder


@pytest.fixture(scope="session")
def adapt(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that inserts LoRA adapters into an exported model as openvino_genai."""
    tools = load_module(GOLDENS / "adapters.py")
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    made: dict[tuple[str, ...], Any] = {}

    def make(name: str, layers: str = tools.PROJECTIONS, kind: str = "f32") -> Any:
        key = (name, layers, kind)
        if key not in made:
            folder = tmp_path_factory.mktemp(name)
            path = restore(GOLDENS / "exported", name, folder)
            (folder / "adapted").mkdir()
            made[key] = tools.adapted_ir(path, folder / "adapted", layers, kind)
        return made[key]

    return make


@pytest.fixture(scope="session")
def llama_8m_goldens() -> Mapping[str, np.ndarray]:
    """Prompts, logits and greedy tokens of llama-8m; see tools/make_goldens.py."""
    return dict(np.load(GOLDENS / "llama_8m.npz"))


@pytest.fixture(scope="session")
def demo_goldens() -> Mapping[str, np.ndarray]:
    """Prompts, logits and greedy tokens of the demo model."""
    return dict(np.load(GOLDENS / "demo.npz"))


def restore_ir(name: str, folder: Path, target: Path) -> Path:
    """Restore an exported IR from its XML and the checkpoint; return the path of the ``.xml``."""
    data = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    described = json.loads((GOLDENS / f"{name}_ir_weights.json").read_text())
    content = bytearray()
    for part in described["parts"]:
        if "tensor" in part:
            first, last = header[part["tensor"]]["data_offsets"]
            content += data[8 + length + first : 8 + length + last]
        else:
            content += base64.b64decode(part["bytes"])
    assert hashlib.sha256(content).hexdigest() == described["sha256"], "not the exporter's file"
    (target / "openvino_model.bin").write_bytes(content)
    xml = target / "openvino_model.xml"
    xml.write_bytes(lzma.decompress((GOLDENS / f"{name}_ir.xml.xz").read_bytes()))
    return xml


@pytest.fixture(autouse=True, scope="session")
def openvino_stays_loaded() -> Iterator[None]:
    """Keep an OpenVINO core alive for the session.

    The CPU plugin of a destroyed core frees a signal stack that the main thread still uses, e.g.
    when the garbage collector runs in another thread; later plugins use the stack of the first.
    """
    core = openvino.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    yield
    del core


@pytest.fixture(autouse=True, scope="module")
def what_outlives_a_file_is_searched_no_more() -> Iterator[None]:
    """Exempt objects that outlive a test file from garbage collection; models have millions."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def stages_are_compiled_once(shared_folder: Path) -> Iterator[None]:
    """Compile each stage of a split model once in this run, for all its processes."""
    with stages_compiled_once(shared_folder / "compiled"):
        yield


@pytest.fixture(autouse=True, scope="session")
def every_schedule_is_checked() -> Iterator[None]:
    """Check the schedule of every blob that a test compiles; equal blobs are checked once."""
    checked: set[bytes] = set()

    def emitted_and_checked(program: Program) -> bytes:
        blob = emit_blob(program)
        digest = hashlib.sha256(blob).digest()
        if digest not in checked:
            whole = expanded(program.scheduled)
            space = program.platform.workspace_bytes
            check_schedule(whole, dependencies(whole.tasks), space)
            spans = touches(whole.tasks)
            check_ddr(list(spans), spans)
            checked.add(digest)
        return blob

    to_blob.emit_blob = emitted_and_checked
    yield
    to_blob.emit_blob = emit_blob
