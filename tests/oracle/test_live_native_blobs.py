"""Native blobs in the real NPU plugin, live: it passes the same payload to a driver."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_plugin import NO_GRAPH, Read, compiler, digest, import_all

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.errors import BlobError
from npuw_layer.storage.native_blob.container import footer, read_blob
from npuw_layer.storage.native_blob.metadata import BlobType, Metadata

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler for the stub driver"),
]

PAYLOAD = b"\x7fELF" + bytes(range(60))
FULL = Metadata(
    openvino=(2031, 7, 9),
    batch=3,
    input_layouts=("NCHW", "[...]"),
    output_layouts=("NC",),
    compiler=7 << 16 | 30,
    compatibility=b"tiles\0",
)


def blob(metadata: Metadata, behind: bytes = b"", payload: bytes = PAYLOAD) -> bytes:
    return payload + metadata.write() + behind + footer(len(payload))


def in_version(content: bytes, minor: int, major: int) -> bytes:
    at = len(PAYLOAD)
    return content[:at] + struct.pack("<2H", minor, major) + content[at + 4 :]


def assert_given(found: Read, payload: bytes) -> None:
    assert found.payload == digest(payload), found.error
    assert NO_GRAPH in found.error


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> dict[str, list[bytes]]:
    """Exports of this stack in both modes, as native blobs and as raw ELF."""
    path = tmp_path_factory.mktemp("model") / "model.xml"
    model, (x,) = Model.build([("x", tensor("f32", (4, 16)))])
    g = GraphBuilder(model)
    weights = g.constant(np.random.default_rng(1).standard_normal((16, 8)).astype(np.float32))
    model.set_outputs([("y", g.matmul(x, weights, False, name="y"))])
    write_ir(model, path)
    modes = ("OPTIMIZE_SIZE", "OPTIMIZE_SPEED")
    return {
        raw: [
            Core()
            .compile_model(path, "NPU", {"CACHE_MODE": mode, "NPU_EXPORT_RAW_BLOB": raw})
            .export_model()
            for mode in modes
        ]
        for raw in ("NO", "YES")
    }


def test_our_exports_are_read_and_their_elf_goes_to_the_driver(exported, tmp_path) -> None:
    for found, elf in zip(import_all(exported["NO"], tmp_path), exported["YES"], strict=True):
        assert_given(found, elf)


def test_raw_blobs_go_to_the_driver_unchanged(exported, tmp_path) -> None:
    raw = exported["YES"]
    for found, elf in zip(
        import_all(raw, tmp_path, {"NPU_IMPORT_RAW_BLOB": "YES"}), raw, strict=True
    ):
        assert_given(found, elf)
    for found in import_all(raw, tmp_path):
        assert found.payload is None
        assert "missing the NPU metadata" in found.error


def test_metadata_of_all_versions_is_read(tmp_path: Path) -> None:
    """Zeros before the footer, as older versions write, and unknown bytes are accepted, too."""
    fields = ("openvino", "batch", "input_layouts", "output_layouts", "compiler", "compatibility")
    given = {name: getattr(FULL, name) for name in fields}
    contents = [
        blob(Metadata(minor, **given), behind)
        for minor in range(8)
        for behind in (b"", bytes(4000), b"ours")
    ]
    for found in import_all(contents, tmp_path):
        assert_given(found, PAYLOAD)


def test_the_plugin_rejects_the_blobs_that_we_reject(tmp_path: Path) -> None:
    contents = {
        "current version is: 2.7": in_version(blob(FULL), 8, 2),
        "metadata version: 3.0": in_version(blob(FULL), 0, 3),
        "missing the NPU metadata": blob(FULL)[:-1],
        "greater than the size of the blob": blob(FULL)[:-13] + footer(2**64 - 1),
        "compiler payload": Metadata().write() + footer(0),
        "no weights have been provided": blob(Metadata(init_sizes=(8,))),
        "no decryption callback": blob(Metadata(encrypted=True)),
        "too small": b"OVNPU",
        "npu_mlir_runtime": blob(Metadata(blob_type=BlobType.LLVM)),
    }
    for found, (problem, content) in zip(
        import_all(list(contents.values()), tmp_path), contents.items(), strict=True
    ):
        assert found.payload is None
        assert problem in found.error.replace("\n", " ")
        with pytest.raises(BlobError):
            Core().import_model(content, "NPU")


def test_without_version_checks_the_payload_is_the_complete_file(tmp_path: Path) -> None:
    """Our payload has the footer's size; an ELF reader accepts both."""
    contents = [blob(FULL), in_version(blob(FULL), 0, 3), PAYLOAD]
    options = {"NPU_DISABLE_VERSION_CHECK": "YES"}
    for found, content in zip(import_all(contents, tmp_path, options), contents, strict=True):
        assert_given(found, content)


def changed(draw: random.Random) -> bytes:
    content = bytearray(blob(FULL, draw.choice((b"", bytes(9)))))
    for _ in range(draw.choice((1, 1, 2, 3))):
        at, width = draw.randrange(len(PAYLOAD), len(content)), draw.choice((1, 2, 4, 8))
        value = draw.choice((0, 1, 2 ** (8 * width) - 1, draw.getrandbits(8 * width)))
        content[at : at + width] = value.to_bytes(width, "little")
    if draw.random() < 0.3:
        at = draw.randrange(len(PAYLOAD), len(content))
        del content[at : at + draw.randrange(12)]
    return bytes(content)


def ours(content: bytes) -> bytes | None:
    """Return our payload; None if we reject the blob, or if the plugin would need more options."""
    try:
        found = read_blob(memoryview(content))
    except BlobError:
        return None
    said = found.metadata
    assert said is not None
    other = said.encrypted or said.init_sizes or said.blob_type is not BlobType.ELF
    return None if other else bytes(found.payload.view)


def test_both_read_the_same_damaged_blobs_with_equal_payloads(tmp_path: Path) -> None:
    draw = random.Random(4)
    contents = [changed(draw) for _ in range(400)]
    payloads = [ours(content) for content in contents]
    for number, found in enumerate(import_all(contents, tmp_path)):
        payload = payloads[number]
        expected = None if payload is None else digest(payload)
        assert found.payload == expected, (number, contents[number].hex(), found.error)
    assert 40 < sum(payload is None for payload in payloads) < 360, "both outcomes occur often"


def test_without_a_driver_the_plugin_reads_no_blob() -> None:
    """The reason for the stub driver of the tests above."""
    with pytest.raises(RuntimeError, match="No backend registered during model import"):
        ov.Core().import_model(ov.Tensor(np.frombuffer(blob(FULL), np.uint8)), "NPU")


def test_the_default_layout_is_written_as_three_dots() -> None:
    assert ov.Layout().to_string() == "[...]"
