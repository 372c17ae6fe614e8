"""Static models for the NPU itself as files: the container of the original's plugin, or an ELF."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from compiler_layer.tools.npuc import main as npuc
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.tools.objdump import main as objdump
from npuw_layer import Core, StaticCompiledModel
from npuw_layer.errors import (
    BlobError,
    BlobVersionError,
    DeviceError,
    ModelError,
    NpuwError,
    OptionError,
)
from npuw_layer.native_blob.container import footer, read_blob
from npuw_layer.native_blob.metadata import BlobType, Metadata
from npuw_layer.tensor import Tensor
from npuw_layer.tools.npuw import main as npuw

RAW = {"NPU_IMPORT_RAW_BLOB": "YES"}
ANY = {"NPU_DISABLE_VERSION_CHECK": "YES"}


def assert_same(compiled: object, model: Any) -> None:
    """Three inferences, so that what variables start as and what they become is seen."""
    assert isinstance(compiled, StaticCompiledModel)
    one, other = (each.create_infer_request() for each in (compiled, model.compiled))
    for seed in range(3):
        inputs = model.inputs(seed)
        found, expected = one.infer(inputs), other.infer(inputs)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name]) for name in found)


@pytest.fixture(scope="module")
def whole(compile_static, graphs) -> Any:
    """A model whose blob has its weights."""
    return compile_static(graphs["classifier"](), CACHE_MODE="OPTIMIZE_SPEED")


@pytest.fixture(scope="module")
def stateful(compile_static, graphs) -> Any:
    return compile_static(graphs["recurrent"](), CACHE_MODE="OPTIMIZE_SPEED")


def payload(content: bytes) -> bytes:
    return bytes(read_blob(memoryview(content)).payload.view)


def described(elf: bytes, **fields: Any) -> bytes:
    """A blob as others write it: the original's fields alone."""
    return elf + Metadata(**fields).write() + footer(len(elf))


def test_the_payload_is_first_and_its_size_last(whole) -> None:
    content = whole.compiled.export_model()
    size, magic = struct.unpack("<Q5s", content[-13:])
    assert (content[:4], magic, size % 4096) == (b"\x7fELF", b"OVNPU", 0)
    assert struct.unpack("<2H3H", content[size : size + 10]) == (7, 2, 2026, 4, 1)
    metadata = read_blob(memoryview(content)).metadata
    assert metadata is not None
    assert metadata.init_sizes == ()
    assert metadata.batch is None
    assert metadata.input_layouts == metadata.output_layouts == ("[...]", "[...]")
    assert metadata.blob_type is BlobType.ELF


def test_weights_are_in_the_elf_or_inputs_of_it(whole, classify) -> None:
    table = np.random.default_rng(1).standard_normal((32, 16)).astype(np.float32)
    assert table.tobytes() in payload(whole.compiled.export_model())
    assert table.tobytes() not in classify.compiled.export_model()


def read_with_another_library(content: bytes) -> list[str]:
    elf = ELFFile(io.BytesIO(content))
    return [section.name for section in elf.iter_sections()]


@pytest.mark.parametrize("raw", ["NO", "YES"], ids=["with a footer", "raw"])
def test_elf_readers_read_it_where_it_is(compile_static, graphs, tmp_path, capsys, raw) -> None:
    """They look at the ELF's own headers, and at nothing behind it."""
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
def test_the_driver_alone_runs_it(whole, raw: bool) -> None:
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


@pytest.mark.parametrize("without", [{}, ANY])
def test_without_version_checks_a_payload_alone_is_one(whole, without) -> None:
    """As in the original, where that takes all of a file for the payload."""
    elf = payload(whole.compiled.export_model())
    if without:
        assert_same(Core().import_model(elf, "NPU", without), whole)
        return
    with pytest.raises(BlobError, match="it does not end with"):
        Core().import_model(elf, "NPU", without)


@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_a_raw_blob_is_the_payload_and_comes_back(compile_static, graphs, mode, tmp_path) -> None:
    options = {"CACHE_MODE": mode, "NPU_EXPORT_RAW_BLOB": "YES"}
    model = compile_static(graphs["classifier"](), **options)
    content = model.compiled.export_model()
    again = compile_static(graphs["classifier"](), CACHE_MODE=mode).compiled.export_model()
    assert content == payload(again)
    with pytest.raises(BlobError, match="for that set NPU_IMPORT_RAW_BLOB to YES"):
        Core().import_model(content, "NPU")
    where = RAW if mode == "OPTIMIZE_SPEED" else RAW | {"MODEL_PTR": str(model.path)}
    path = tmp_path / "raw.blob"
    path.write_bytes(content)
    for source in (path, content, io.BytesIO(content), np.frombuffer(content, np.uint8)):
        assert_same(Core().import_model(source, "NPU", where), model)
    assert_same(Core().import_model(again, "NPU", where), model)  # what follows is not looked at


def test_a_raw_blob_without_weights_says_where_they_should_be(classify) -> None:
    elf = payload(classify.compiled.export_model())
    with pytest.raises(OptionError, match=r"\(model\.bin\); set WEIGHTS_PATH"):
        Core().import_model(elf, "NPU", RAW)
    with pytest.raises(ModelError, match="No such file"):
        Core().import_model(elf, "NPU", RAW | {"WEIGHTS_PATH": str(classify.path.parent / "no/x")})


def test_what_npuc_compiles_is_imported(graphs, classify, tmp_path) -> None:
    write_ir(graphs["classifier"](), tmp_path / "model.xml")
    blob = tmp_path / "model.blob"
    arguments = ["compile", str(tmp_path / "model.xml"), "-o", str(blob), "--precision", "f32"]
    assert npuc(arguments) == 0
    assert_same(Core().import_model(blob, "NPU", RAW), classify)
    assert npuc([*arguments, "--weightless"]) == 0
    where = {"WEIGHTS_PATH": str(tmp_path / "model.bin")}
    assert_same(Core().import_model(blob, "NPU", RAW | where), classify)


def test_a_tensor_of_bytes_is_imported(whole) -> None:
    content = whole.compiled.export_model()
    array = np.frombuffer(content, np.uint8)
    for source in (Tensor(array), array, bytearray(content), memoryview(content)):
        assert_same(Core().import_model(source, "NPU"), whole)
    stream = io.BytesIO(b"before" + content)
    stream.seek(6)
    assert_same(Core().import_model(stream, "NPU"), whole)


@pytest.mark.parametrize("minor", range(8))
def test_blobs_of_all_versions_are_imported(whole, minor: int) -> None:
    """As the original's other releases write them: no section of ours is in them."""
    elf = payload(whole.compiled.export_model())
    for behind in (b"", bytes(4096 - 13)):
        content = elf + Metadata(minor, (2025, 1, 0)).write() + behind + footer(len(elf))
        assert_same(Core().import_model(content, "NPU"), whole)


def test_the_fields_of_others_are_held_to_the_program(whole) -> None:
    elf = payload(whole.compiled.export_model())
    layouts = {"input_layouts": ("N", "NC"), "output_layouts": ("NC", "NC")}
    fitting = described(elf, **layouts, batch=1, compiler=9, compatibility=b"whatever")
    assert_same(Core().import_model(fitting, "NPU"), whole)
    with pytest.raises(BlobError, match="layouts of 1 inputs, its program has 2"):
        Core().import_model(described(elf, input_layouts=("N",)), "NPU")
    with pytest.raises(BlobError, match=r"it has 1 init schedules, .* CACHE_MODE = OPTIMIZE_SPEED"):
        Core().import_model(described(elf, init_sizes=(1,)), "NPU")


def test_state_needs_what_an_elf_alone_does_not_say(stateful, compile_static, graphs) -> None:
    elf = payload(stateful.compiled.export_model())
    for content, options in ((elf, RAW), (described(elf), {})):
        with pytest.raises(BlobError, match="variables, and nothing says what they start as"):
            Core().import_model(content, "NPU", options)
    raw = compile_static(graphs["recurrent"](), NPU_EXPORT_RAW_BLOB="YES").compiled
    with pytest.raises(OptionError, match="what the variables 'memory' start as; leave it out"):
        raw.export_model()


def renamed_version(content: bytes, minor: int, major: int) -> bytes:
    size = len(payload(content))
    return content[:size] + struct.pack("<2H", minor, major) + content[size + 4 :]


def test_metadata_of_unknown_versions_is_refused_unless_versions_do_not_count(whole) -> None:
    elf = payload(whole.compiled.export_model())
    for minor, major in ((8, 2), (0, 3)):
        content = renamed_version(described(elf), minor, major)
        with pytest.raises(BlobVersionError, match=f"metadata {major}.{minor}, this is 2.0 to 2.7"):
            Core().import_model(content, "NPU")
        assert_same(Core().import_model(content, "NPU", ANY), whole)


def test_what_other_versions_of_ours_made_is_refused_unless_versions_do_not_count(
    whole, stateful, monkeypatch, caplog
) -> None:
    contents = [each.compiled.export_model() for each in (whole, stateful)]
    current = {"npuw": "9.9", "device": "another"}
    monkeypatch.setattr("npuw_layer.model_blob.imported.own_version", lambda: {"npuw": "9.9"})
    monkeypatch.setattr("npuw_layer.model_blob.imported.current_versions", lambda *_: current)
    for content, model in zip(contents, (whole, stateful), strict=True):
        with pytest.raises(BlobVersionError, match=r"9\.9; export it anew, or set NPU_DISABLE"):
            Core().import_model(content, "NPU")
        assert_same(Core().import_model(content, "NPU", ANY), model)
        assert "other versions of npuw made it" in caplog.text


def test_a_program_for_another_platform_is_refused_whatever_versions_count(whole) -> None:
    content = whole.compiled.export_model()
    with pytest.raises(BlobVersionError, match=r"NPU 4000 .* NPU 3720"):
        Core().import_model(content, "NPU", {"NPU_PLATFORM": "3720"})
    for options in (RAW, ANY):
        with pytest.raises(DeviceError, match="the device refuses its payload"):
            Core().import_model(
                described(payload(content)), "NPU", options | {"NPU_PLATFORM": "3720"}
            )


def flip(content: bytes) -> bytes:
    return bytes(np.frombuffer(content, np.uint8) ^ 0x5A)


def test_the_payload_alone_is_encrypted_as_in_the_original(compile_static, graphs) -> None:
    secret = {"CACHE_ENCRYPTION_CALLBACKS": (flip, flip)}
    model = compile_static(graphs["classifier"](), CACHE_MODE="OPTIMIZE_SPEED", **secret)
    content = model.compiled.export_model()
    blob = read_blob(memoryview(content))
    assert blob.metadata is not None
    assert blob.metadata.encrypted
    assert flip(bytes(blob.payload.view))[:4] == b"\x7fELF"
    assert_same(Core().import_model(content, "NPU", secret), model)
    by_others = described(bytes(blob.payload.view), encrypted=True)
    assert_same(Core().import_model(by_others, "NPU", secret), model)
    assert_same(Core().import_model(bytes(blob.payload.view), "NPU", RAW | secret), model)
    other = {"CACHE_ENCRYPTION_CALLBACKS": (flip, bytes)}
    for wrong in ({}, other):
        with pytest.raises(BlobError):
            Core().import_model(content, "NPU", wrong)
    with pytest.raises(DeviceError):
        Core().import_model(by_others, "NPU", other)


def test_native_blobs_of_untrusted_sources_are_imported_those_of_npuw_are_not(
    whole, compile_static, graphs
) -> None:
    untrusted = {"NPU_UNTRUSTED_SOURCE": "YES"}
    assert_same(Core().import_model(whole.compiled.export_model(), "NPU", untrusted), whole)
    through = compile_static(graphs["classifier"](), NPU_USE_NPUW="YES").compiled.export_model()
    with pytest.raises(OptionError, match="NPU_UNTRUSTED_SOURCE = YES: blobs of NPUW"):
        Core().import_model(through, "NPU", untrusted)


def test_models_through_npuw_keep_its_container(compile_static, graphs) -> None:
    model = compile_static(graphs["classifier"](), NPU_USE_NPUW="YES")
    assert model.compiled.export_model()[:12] == b"\x13\x37npuwSTATIC"
    with pytest.raises(OptionError, match="NPU_EXPORT_RAW_BLOB = YES: what goes through NPUW"):
        compile_static(graphs["classifier"](), NPU_USE_NPUW="YES", NPU_EXPORT_RAW_BLOB="YES")


def test_options_of_npuw_do_not_fit_a_native_blob(whole) -> None:
    content = whole.compiled.export_model()
    for name in ("NPU_USE_NPUW", "NPUW_LLM"):
        with pytest.raises(OptionError, match="the blob is for the NPU itself"):
            Core().import_model(content, "NPU", {name: "YES"})
    with pytest.raises(OptionError, match="NPUW_ACC_CHECK"):
        Core().import_model(payload(content), "NPU", RAW | {"NPUW_ACC_CHECK": "YES"})


def test_damage_that_no_digest_tells_gives_typed_errors_or_results(whole) -> None:
    """What others write has no digests: the driver must not fall over."""
    draw = np.random.default_rng(7)
    elf = payload(whole.compiled.export_model())
    outcomes: set[str] = set()
    for _ in range(60):
        damaged = bytearray(described(elf))
        at = int(draw.integers(0, 20_000))
        damaged[at : at + 4] = draw.bytes(4)
        try:
            Core().import_model(bytes(damaged), "NPU").create_infer_request()
        except NpuwError as error:
            outcomes.add(type(error).__name__)
        else:
            outcomes.add("model")
    assert {"DeviceError", "model"} <= outcomes


@pytest.mark.parametrize("content", [b"", b"x", b"\x7fELF", b"OVNPU", b"\x7fELF" + bytes(200)])
@pytest.mark.parametrize("options", [{}, RAW, ANY])
def test_what_is_too_short_for_anything_is_refused(content: bytes, options) -> None:
    with pytest.raises((BlobError, DeviceError)):
        Core().import_model(content, "NPU", options)


def test_weights_in_the_elf_are_kept_in_the_cache_apart_from_programs_without(
    graphs, tmp_path
) -> None:
    """A start that finds its program is the same model, whichever is asked for in between."""
    write_ir(graphs["classifier"](), tmp_path / "model.xml")
    cached: list[bool] = []
    for mode in ("OPTIMIZE_SIZE", "OPTIMIZE_SPEED") * 2:
        config = {"CACHE_DIR": str(tmp_path / "cache"), "CACHE_MODE": mode}
        compiled = Core().compile_model(tmp_path / "model.xml", "NPU", config)
        cached.append(compiled.get_property("LOADED_FROM_CACHE"))
        assert (b'"files":{}' in compiled.export_model()) == (mode == "OPTIMIZE_SPEED")
    assert cached == [False, False, True, True]


Show = Callable[..., str]


@pytest.fixture
def show(capsys, tmp_path: Path) -> Show:
    def run(content: bytes, *arguments: str) -> str:
        path = tmp_path / "shown.blob"
        path.write_bytes(content)
        assert npuw(["show", str(path), *arguments]) == 0
        return capsys.readouterr().out

    return run


def test_the_tool_shows_what_a_blob_says_and_takes_its_program_out(
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
    assert "of a version that is not known" in show(renamed_version(content, 0, 3))
    assert npuw(["extract", str(tmp_path / "shown.blob"), str(tmp_path / "taken")]) == 2
    (tmp_path / "shown.blob").write_bytes(content)
    capsys.readouterr()
    assert npuw(["extract", str(tmp_path / "shown.blob"), str(tmp_path / "taken")]) == 0
    assert (tmp_path / "taken" / "program.blob").read_bytes() == payload(content)


def test_the_tool_shows_blobs_of_npuw_and_entries_of_the_cache(
    compile_static, graphs, show, tmp_path
) -> None:
    options = {"NPU_USE_NPUW": "YES", "CACHE_DIR": str(tmp_path / "cache")}
    model = compile_static(graphs["classifier"](), **options)
    assert "a static model through NPUW" in show(model.compiled.export_model())
    (entry, *_) = (tmp_path / "cache").glob("*.blob")
    assert "an entry of the cache" in show(entry.read_bytes())
