"""Native blobs in tools: ELF readers, the driver alone, npuc, npu-objdump and npuw."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from tests.npuw.kinds.static.native import RAW, assert_same, described, payload, renamed_version

from compiler_layer.tools.npuc import main as npuc
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.tools.objdump import main as objdump
from npuw_layer import Core
from npuw_layer.tools.npuw import main as npuw

Show = Callable[..., str]


def read_with_another_library(content: bytes) -> list[str]:
    elf = ELFFile(io.BytesIO(content))
    return [section.name for section in elf.iter_sections()]


@pytest.mark.parametrize("raw", ["NO", "YES"], ids=["with a footer", "raw"])
def test_elf_readers_read_a_blob_in_place(compile_static, graphs, tmp_path, capsys, raw) -> None:
    """ELF readers use the ELF's own headers, and ignore all bytes after it."""
    options = {"CACHE_MODE": "OPTIMIZE_SPEED", "NPU_EXPORT_RAW_BLOB": raw}
    content = compile_static(graphs["classifier"](), **options).compiled.export_model()
    path = tmp_path / "model.blob"
    path.write_bytes(content)
    names = read_with_another_library(content)
    assert names == read_with_another_library(payload(content) if raw == "NO" else content)
    assert any("task" in name for name in names)
    assert objdump(["--check", str(path)]) == 0
    assert npuc(["explain", str(path)]) == 0
    assert "scores" in capsys.readouterr().out
    readelf = shutil.which("readelf")
    if readelf is not None:
        done = subprocess.run(
            [readelf, "-aW", path], capture_output=True, text=True, check=True, timeout=60
        )
        assert all(name in done.stdout for name in names)
        assert "Error" not in done.stderr


@pytest.mark.parametrize("raw", [False, True], ids=["with a footer", "raw"])
def test_the_driver_alone_runs_a_blob(whole, raw: bool) -> None:
    content = whole.compiled.export_model()
    platform, space = PLATFORMS["4000"], AddressSpace()
    inference = HostParsedInference(payload(content) if raw else content, platform)
    inference.load(space)
    inputs = whole.inputs(0)
    ports = [*whole.compiled.inputs, *whole.compiled.outputs]
    memory = {p.any_name: space.allocate(p.byte_size, MemoryKind.DMA) for p in ports}
    for name, values in inputs.items():
        memory[name].data[: values.nbytes] = values.reshape(-1).view(np.uint8)
    sides = inference.metadata.inputs, inference.metadata.outputs
    addresses = [[memory[tensor.name].address for tensor in side] for side in sides]
    inference.apply_input_output(*addresses)
    Device(platform).run_inference(space, inference.address)
    for name, values in whole.compiled.create_infer_request().infer(inputs).items():
        found = memory[name].data[: values.nbytes].view(values.dtype).reshape(values.shape)
        np.testing.assert_allclose(found, values, rtol=1e-6, atol=1e-6)


def test_a_blob_compiled_by_npuc_is_imported(graphs, classify, tmp_path) -> None:
    write_ir(graphs["classifier"](), tmp_path / "model.xml")
    blob = tmp_path / "model.blob"
    arguments = ["compile", str(tmp_path / "model.xml"), "-o", str(blob), "--precision", "f32"]
    assert npuc(arguments) == 0
    assert_same(Core().import_model(blob, "NPU", RAW), classify)
    assert npuc([*arguments, "--weightless"]) == 0
    where = {"WEIGHTS_PATH": str(tmp_path / "model.bin")}
    assert_same(Core().import_model(blob, "NPU", RAW | where), classify)


@pytest.fixture
def show(capsys, tmp_path: Path) -> Show:
    def run(content: bytes, *arguments: str) -> str:
        path = tmp_path / "shown.blob"
        path.write_bytes(content)
        assert npuw(["show", str(path), *arguments]) == 0
        return capsys.readouterr().out

    return run


def test_the_tool_shows_a_blobs_fields_and_extracts_its_program(
    whole, show, tmp_path, capsys
) -> None:
    content = whole.compiled.export_model()
    lines = [line.split() for line in show(content).splitlines()]
    for line in (
        ["metadata", "2.7"],
        ["openvino", "2026.4.1"],
        ["blob", "type", "ELF"],
        ["CACHE_MODE", "OPTIMIZE_SPEED"],
        ["bytes", f"{len(content):,}"],
    ):
        assert line in lines
    foreign = described(payload(content), batch=3, compatibility=b"\x1b[2Jtiles\0\xff")
    shown = show(foreign)
    assert "\\x1b[2Jtiles\\x00" in shown
    assert "\x1b" not in shown
    assert '"batch": 3' in show(foreign, "--json")
    assert "a payload alone" in show(payload(content))
    assert "of an unknown version" in show(renamed_version(content, 0, 3))
    assert npuw(["extract", str(tmp_path / "shown.blob"), str(tmp_path / "taken")]) == 2
    (tmp_path / "shown.blob").write_bytes(content)
    capsys.readouterr()
    assert npuw(["extract", str(tmp_path / "shown.blob"), str(tmp_path / "taken")]) == 0
    assert (tmp_path / "taken" / "program.blob").read_bytes() == payload(content)


def test_the_tool_shows_blobs_of_npuw_and_cache_entries(
    compile_static, graphs, show, tmp_path
) -> None:
    options = {"NPU_USE_NPUW": "YES", "CACHE_DIR": str(tmp_path / "cache")}
    model = compile_static(graphs["classifier"](), **options)
    assert "a static model through NPUW" in show(model.compiled.export_model())
    (entry, *_) = (tmp_path / "cache").glob("*.blob")
    assert "an entry of the cache" in show(entry.read_bytes())
