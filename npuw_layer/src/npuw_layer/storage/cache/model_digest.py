"""Digest of a model's content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path

from compiler_layer.errors import CompilerError
from compiler_layer.model_folder import checkpoint_files
from driver_layer.support.files import open_regular
from driver_layer.support.progress import counted
from npuw_layer.errors import ModelError
from npuw_layer.storage.cache.known_files import KnownFiles, seen

_BLOCK = 1 << 20
"""Bytes that are hashed at once."""


def digest_model(path: Path, folder: Path | None) -> str:
    """Hash the files of a model.

    Args:
        path: an IR's ``.xml``, or a Hugging Face folder.
        folder: folder where hashes are kept; None keeps none.

    Raises:
        ModelError: the path is not a model, or a file cannot be read.
    """
    return join_digests(digest_files(model_files(path), KnownFiles(folder)))


def digest_files(files: list[Path], known: KnownFiles) -> dict[str, str]:
    """Return the SHA-256 of each file's content, by file name.

    Raises:
        ModelError: a file cannot be read.
    """
    digests: dict[str, str] = {}
    for file in files:
        try:
            digests[file.name] = _digest_file(file, known)
        except OSError as error:
            raise ModelError(f"{file}: {error.strerror}") from None
    return digests


def join_digests(digests: Mapping[str, str]) -> str:
    """Return one digest of several files' names and digests."""
    whole = hashlib.sha256()
    for name, digest in digests.items():
        whole.update(name.encode() + b"\0")
        whole.update(bytes.fromhex(digest))
    return whole.hexdigest()


def model_files(path: Path) -> list[Path]:
    """Return the files of an IR (given by its ``.xml``) or of a Hugging Face folder.

    Raises:
        ModelError: the path is neither, or the folder has no checkpoint.
    """
    if path.suffix == ".xml":
        weights = path.with_suffix(".bin")
        return [path, weights] if weights.exists() else [path]
    if (path / "config.json").is_file():
        try:
            return [path / "config.json", *checkpoint_files(path)]
        except CompilerError as error:
            raise ModelError(str(error)) from None
    raise ModelError(
        f"{path}: not a model; pass an openvino_model.xml, or a folder with config.json and "
        "model.safetensors"
    )


def _digest_file(file: Path, known: KnownFiles) -> str:
    with open_regular(file) as content:
        status = os.fstat(content.fileno())
        digest = known.recall(file, status)
        if digest is None:
            digest = _sha256(content, f"reading {file.name}", status.st_size)
            if seen(os.fstat(content.fileno())) == seen(status):
                known.learn(file, status, digest)
    return digest


def _sha256(content: BufferedReader, activity: str, size: int) -> str:
    """Return the SHA-256 of a file's content in hex, and report the progress of reading it."""
    digest, block = hashlib.sha256(), memoryview(bytearray(_BLOCK))
    with counted(activity, size, "B") as advance:
        while count := content.readinto(block):
            digest.update(block[:count])
            advance(count)
    return digest.hexdigest()
