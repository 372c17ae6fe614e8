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
from weakref import WeakValueDictionary, finalize

import numpy as np

from compiler_layer.files import unmap_unused
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
        ModelError: the system has no such memory, or too little.
    """

    def __init__(self, text: bytes, weights: Array) -> None:
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
            for suffix, content in ((".xml", memoryview(text)), (".bin", held)):
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
