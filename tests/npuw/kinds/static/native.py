"""Common parts of the tests of native blobs."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from driver_layer.abi.layout import field_offset
from driver_layer.abi.notes import CONTENT_DIGEST, NOTE
from driver_layer.loader.read import read_blob as read_elf
from npuw_layer import StaticCompiledModel
from npuw_layer.storage.native_blob.container import footer, read_blob
from npuw_layer.storage.native_blob.metadata import Metadata

RAW = {"NPU_IMPORT_RAW_BLOB": "YES"}
ANY = {"NPU_DISABLE_VERSION_CHECK": "YES"}


def assert_same(compiled: object, model: Any) -> None:
    """Compare three inferences, to see initial and later values of variables."""
    assert isinstance(compiled, StaticCompiledModel)
    one, other = (each.create_infer_request() for each in (compiled, model.compiled))
    for seed in range(3):
        inputs = model.inputs(seed)
        found, expected = one.infer(inputs), other.infer(inputs)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], expected[name]) for name in found)


def payload(content: bytes) -> bytes:
    return bytes(read_blob(memoryview(content)).payload.view)


def of_others(elf: bytes) -> bytes:
    """Return an ELF without npuc's digest: the name and type of its note become unknown."""
    (note,) = (each for each in read_elf(elf).sections if each.name == CONTENT_DIGEST)
    kind = note.offset + field_offset(NOTE, "type")
    changed = elf[:kind] + b"what" + elf[kind + 4 :]
    return changed.replace(CONTENT_DIGEST.encode(), b"note.WhateverElse!")


def described(elf: bytes, **fields: Any) -> bytes:
    """Return a blob as others write it: only with the plugin's fields."""
    return elf + Metadata(**fields).write() + footer(len(elf))


def renamed_version(content: bytes, minor: int, major: int) -> bytes:
    size = len(payload(content))
    return content[:size] + struct.pack("<2H", minor, major) + content[size + 4 :]
