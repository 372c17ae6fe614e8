"""Static models for the NPU itself as files: the container of OpenVINO's NPU plugin, or an ELF."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from tests.npuw.kinds.static.native import RAW, assert_same, described, payload

from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import (
    BlobError,
    ModelError,
    OptionError,
)
from npuw_layer.storage.native_blob.container import read_blob
from npuw_layer.storage.native_blob.metadata import BlobType


def flip(content: bytes) -> bytes:
    return bytes(np.frombuffer(content, np.uint8) ^ 0x5A)


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


def test_weights_are_in_the_elf_or_are_its_inputs(whole, classify) -> None:
    table = np.random.default_rng(1).standard_normal((32, 16)).astype(np.float32)
    assert table.tobytes() in payload(whole.compiled.export_model())
    assert table.tobytes() not in classify.compiled.export_model()


@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_a_raw_blob_is_the_payload_and_is_imported(compile_static, graphs, mode, tmp_path) -> None:
    options = {"CACHE_MODE": mode, "NPU_EXPORT_RAW_BLOB": "YES"}
    model = compile_static(graphs["classifier"](), **options)
    content = model.compiled.export_model()
    again = compile_static(graphs["classifier"](), CACHE_MODE=mode).compiled.export_model()
    assert content == payload(again)
    with pytest.raises(BlobError, match="for a payload set NPU_IMPORT_RAW_BLOB to YES"):
        Core().import_model(content, "NPU")
    where = RAW if mode == "OPTIMIZE_SPEED" else RAW | {"MODEL_PTR": str(model.path)}
    path = tmp_path / "raw.blob"
    path.write_bytes(content)
    for source in (path, content, io.BytesIO(content), np.frombuffer(content, np.uint8)):
        assert_same(Core().import_model(source, "NPU", where), model)
    assert_same(Core().import_model(again, "NPU", where), model)  # trailing bytes are ignored


def test_the_error_for_a_raw_blob_without_weights_names_the_file(classify) -> None:
    elf = payload(classify.compiled.export_model())
    with pytest.raises(OptionError, match=r"\(model\.bin\); set WEIGHTS_PATH"):
        Core().import_model(elf, "NPU", RAW)
    with pytest.raises(ModelError, match="No such file"):
        Core().import_model(elf, "NPU", RAW | {"WEIGHTS_PATH": str(classify.path.parent / "no/x")})


def test_a_tensor_of_bytes_is_imported(whole) -> None:
    content = whole.compiled.export_model()
    array = np.frombuffer(content, np.uint8)
    for source in (Tensor(array), array, bytearray(content), memoryview(content)):
        assert_same(Core().import_model(source, "NPU"), whole)
    stream = io.BytesIO(b"before" + content)
    stream.seek(6)
    assert_same(Core().import_model(stream, "NPU"), whole)


def test_a_bare_elf_cannot_hold_state(stateful, compile_static, graphs) -> None:
    elf = payload(stateful.compiled.export_model())
    for content, options in ((elf, RAW), (described(elf), {})):
        with pytest.raises(BlobError, match="variables, but it has no initial values"):
            Core().import_model(content, "NPU", options)
    raw = compile_static(graphs["recurrent"](), NPU_EXPORT_RAW_BLOB="YES").compiled
    with pytest.raises(OptionError, match="initial values of the variables 'memory'; leave"):
        raw.export_model()


def test_the_payload_alone_is_encrypted_as_in_openvino(compile_static, graphs) -> None:
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
    with pytest.raises(BlobError, match=r"its payload cannot be used: .*: not a 64-bit"):
        Core().import_model(by_others, "NPU", other)


def test_untrusted_native_blobs_are_imported_but_npuws_are_not(
    whole, compile_static, graphs
) -> None:
    untrusted = {"NPU_UNTRUSTED_SOURCE": "YES"}
    assert_same(Core().import_model(whole.compiled.export_model(), "NPU", untrusted), whole)
    through = compile_static(graphs["classifier"](), NPU_USE_NPUW="YES").compiled.export_model()
    with pytest.raises(OptionError, match="NPU_UNTRUSTED_SOURCE = YES: blobs of NPUW"):
        Core().import_model(through, "NPU", untrusted)


def test_models_through_npuw_use_npuws_container(compile_static, graphs) -> None:
    model = compile_static(graphs["classifier"](), NPU_USE_NPUW="YES")
    assert model.compiled.export_model()[:12] == b"\x13\x37npuwSTATIC"
    with pytest.raises(OptionError, match="RAW_BLOB = YES: a model that runs through NPUW"):
        compile_static(graphs["classifier"](), NPU_USE_NPUW="YES", NPU_EXPORT_RAW_BLOB="YES")


def test_options_of_npuw_do_not_fit_a_native_blob(whole) -> None:
    content = whole.compiled.export_model()
    for name in ("NPU_USE_NPUW", "NPUW_LLM"):
        with pytest.raises(OptionError, match="the blob is for the NPU itself"):
            Core().import_model(content, "NPU", {name: "YES"})
    with pytest.raises(OptionError, match="NPUW_ACC_CHECK"):
        Core().import_model(payload(content), "NPU", RAW | {"NPUW_ACC_CHECK": "YES"})


def test_cache_entries_with_and_without_weights_in_the_elf_are_separate(graphs, tmp_path) -> None:
    """A cached program gives the same model, even if the other form was compiled in between."""
    write_ir(graphs["classifier"](), tmp_path / "model.xml")
    cached: list[bool] = []
    for mode in ("OPTIMIZE_SIZE", "OPTIMIZE_SPEED") * 2:
        config = {"CACHE_DIR": str(tmp_path / "cache"), "CACHE_MODE": mode}
        compiled = Core().compile_model(tmp_path / "model.xml", "NPU", config)
        cached.append(compiled.get_property("LOADED_FROM_CACHE"))
        assert (b'"files":{}' in compiled.export_model()) == (mode == "OPTIMIZE_SPEED")
    assert cached == [False, False, True, True]
