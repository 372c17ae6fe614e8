"""IRs held in memory: text and weights as files that have no place on a disk.

Models are read by name and mapped, and so are these: the content is in sealed memory of Linux
(memfd), to which links in a private folder point. The folder has no content of its own, and is
removed with the model; a killed process leaves links to nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import cast
from weakref import WeakValueDictionary, finalize

import numpy as np

from compiler_layer.files import unmap_unused
from driver_layer.support.files import looking_at
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError

_NAME = "openvino_model"
"""Name of the files; with the exporter's names, a folder's cached programs fit."""


class MemoryModel:
    """An IR in memory, until the last compiled model that reads its weights is gone.

    Args:
        text: content of the ``.xml``.
        weights: content of the ``.bin``; copied.

    Raises:
        ModelError: the text is none, or the system has no such memory, or too little.
    """

    def __init__(self, text: object, weights: Array) -> None:
        if not isinstance(text, str | bytes):
            raise ModelError(
                f"read_model: {type(text).__name__} is not the text of a model; pass the content "
                "of its .xml, or its path to compile_model"
            )
        try:
            xml = text.encode() if isinstance(text, str) else text
        except UnicodeEncodeError as error:
            raise ModelError(f"read_model: {error}; pass the text as bytes") from None
        if sys.platform != "linux":
            raise ModelError(
                "a model in memory: this system has no memfd_create; save the model, and pass its "
                "path"
            )
        held = np.ascontiguousarray(weights).reshape(-1).view(np.uint8).data
        descriptors = list[int]()
        try:
            folder = Path(tempfile.mkdtemp(prefix="npuw-model-"))
            finalize(self, _release, folder, descriptors, os.getpid())
            for suffix, content in ((".xml", memoryview(xml)), (".bin", held)):
                descriptors.append(_sealed(content))
                file = f"/proc/{os.getpid()}/fd/{descriptors[-1]}"
                (folder / (_NAME + suffix)).symlink_to(file)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            raise ModelError(f"a model in memory: {place}{error.strerror}") from None
        self.path = folder / f"{_NAME}.xml"
        """Path of the ``.xml``; the ``.bin`` is next to it."""
        _models[folder] = self


def model_in(folder: Path) -> MemoryModel | None:
    """Return the model in memory whose files are in a folder; None for any other folder."""
    return _models.get(folder)


_models: WeakValueDictionary[Path, MemoryModel] = WeakValueDictionary()


def _sealed(content: memoryview) -> int:
    """Return the descriptor of memory with a content that nobody can change."""
    import fcntl  # as memfd_create, it exists on Linux only

    descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def _release(folder: Path, descriptors: Iterable[int], process: int) -> None:
    if os.getpid() != process:
        return  # a forked process has no part in the model
    shutil.rmtree(folder, ignore_errors=True)
    for descriptor in descriptors:
        os.close(descriptor)
    unmap_unused()  # unlike a file's pages, this memory stays as long as it is mapped


def model_path(model: object) -> Path:
    """Return the path of a model; for a folder with an IR, that of the IR.

    Raises:
        ModelError: the value is no model, or the path does not exist.
    """
    if isinstance(model, MemoryModel):
        return model.path
    if not isinstance(model, str | os.PathLike):
        raise ModelError(
            f"{model!r} is not a path; pass the model's IR or folder, or read_model(text, weights)"
        )
    path = Path(cast("str | os.PathLike[str]", model))
    with looking_at(path, ModelError):
        if not path.exists():
            raise ModelError(f"{path}: no such file or folder")
        ir = path / "openvino_model.xml"
        return ir if path.is_dir() and ir.is_file() else path
