"""Checked form of OpenVINO's property maps of remote tensors.

Source: docs/reference/npuw.md#remote-tensors (names, rejected values); Intel KB 000101553.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from npuw_layer.errors import RemoteError


class MemType(StrEnum):
    """Kind of a remote tensor's memory (MEM_TYPE)."""

    L0_INTERNAL_BUF = "L0_INTERNAL_BUF"
    """Memory allocated through Level Zero."""
    SHARED_BUF = "SHARED_BUF"
    """Memory given by MEM_HANDLE, allocated through Level Zero: an object of this context, an
    address in one, or the descriptor of a DMA-BUF of any context."""
    MMAPED_FILE = "MMAPED_FILE"
    """A file that FILE_DESCRIPTOR names, mapped; only for inputs."""
    CPU_VA = "CPU_VA"
    """Host memory given by MEM_HANDLE: an array, or another buffer, of complete pages."""


class TensorType(StrEnum):
    """Use of a remote tensor (TENSOR_TYPE); the spelling is OpenVINO's."""

    INPUT = "INPUT"
    """Only inputs: the device never writes the tensor."""
    OUTPUT = "OUTPUT"
    """Only outputs."""
    BINDED = "BINDED"
    """Inputs and outputs."""


MEM_TYPE = "MEM_TYPE"
MEM_HANDLE = "MEM_HANDLE"
TENSOR_TYPE = "TENSOR_TYPE"
FILE_DESCRIPTOR = "FILE_DESCRIPTOR"
L0_CONTEXT = "L0_CONTEXT"

_NAMES = (MEM_TYPE, MEM_HANDLE, TENSOR_TYPE, FILE_DESCRIPTOR)

_HANDLED = (MemType.SHARED_BUF, MemType.CPU_VA)


@dataclass(frozen=True, slots=True)
class FileDescriptor:
    """A place in a file (ov::intel_npu::FileDescriptor)."""

    path: str | os.PathLike[str]
    offset: int = 0
    """Offset in the file, bytes."""


@dataclass(frozen=True, slots=True)
class RemoteProperties:
    """A checked property map."""

    mem_type: MemType = MemType.L0_INTERNAL_BUF
    tensor_type: TensorType = TensorType.BINDED
    handle: object = None
    file: FileDescriptor | None = None


def parse_properties(properties: Mapping[str, Any] | None) -> RemoteProperties:
    """Check a property map; None or an empty map means L0_INTERNAL_BUF.

    Raises:
        RemoteError: a name or value is unknown, or a property is missing or does not apply.
    """
    if not properties:
        return RemoteProperties()
    for name in properties:
        if name not in _NAMES:
            near = difflib.get_close_matches(str(name), _NAMES, 1)
            hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(_NAMES)}"
            raise RemoteError(f"unknown property {name!r}; {hint}")
    if MEM_TYPE not in properties:
        raise RemoteError(f"{', '.join(properties)} without MEM_TYPE; set it: {', '.join(MemType)}")
    mem_type = _word(MEM_TYPE, properties[MEM_TYPE], MemType)
    default = TensorType.INPUT if mem_type is MemType.MMAPED_FILE else TensorType.BINDED
    tensor_type = _word(TENSOR_TYPE, properties.get(TENSOR_TYPE, default), TensorType)
    if mem_type is MemType.MMAPED_FILE and tensor_type is not TensorType.INPUT:
        raise RemoteError(
            f"TENSOR_TYPE = {tensor_type}: MMAPED_FILE is only for inputs, as the device would "
            f"write to the file; use INPUT"
        )
    handle = _partner(properties, MEM_HANDLE, mem_type, _HANDLED)
    described = _partner(properties, FILE_DESCRIPTOR, mem_type, (MemType.MMAPED_FILE,))
    file = None if described is None else _file(described)
    return RemoteProperties(mem_type, tensor_type, handle, file)


W = TypeVar("W", bound=StrEnum)


def _word(name: str, value: object, words: type[W]) -> W:
    try:
        return words(value)
    except ValueError:
        raise RemoteError(f"{name} = {value!r}; use one of {', '.join(words)}") from None


def _partner(
    properties: Mapping[str, Any], name: str, mem_type: MemType, takes: tuple[MemType, ...]
) -> Any:
    """Return a property that some kinds of memory require, and others reject."""
    value = properties.get(name)
    if mem_type in takes and value is None:
        raise RemoteError(f"{mem_type} needs {name}")
    if mem_type not in takes and value is not None:
        raise RemoteError(f"{mem_type} does not accept {name}; {' and '.join(takes)} do")
    return value


def _file(value: object) -> FileDescriptor:
    if isinstance(value, str | os.PathLike):
        value = FileDescriptor(value)  # pyright: ignore[reportUnknownArgumentType] (a path of str)
    if not isinstance(value, FileDescriptor):
        raise RemoteError(f"FILE_DESCRIPTOR = {value!r}; pass a path or a FileDescriptor")
    if not os.fspath(value.path):
        raise RemoteError("FILE_DESCRIPTOR: the path is empty")
    if not isinstance(value.offset, int) or value.offset < 0:  # pyright: ignore[reportUnnecessaryIsInstance] (callers may err)
        raise RemoteError(
            f"FILE_DESCRIPTOR {Path(value.path)}: offset {value.offset!r} is not >= 0"
        )
    return value
