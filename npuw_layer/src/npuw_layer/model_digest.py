"""What tells a model's content from others'.

Hashing a gigabyte takes most of a second, so a file's hash is kept beside the programs, together
with what the file system says of the file: when it was changed, how large it is, and which it is.
If that is as it was, so is the content. A file that was changed just now is hashed each time, as
one more change might not be seen by its time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from npuw_layer.errors import ModelError

_SETTLED_NS = 2_000_000_000
"""A file system may count time in steps of two seconds."""


def digest_model(path: Path, folder: Path | None) -> str:
    """Hash the files that a model consists of.

    Args:
        path: an IR's ``.xml``, or a Hugging Face folder.
        folder: where hashes are kept; None keeps none.

    Raises:
        ModelError: there is none, or one cannot be read.
    """
    whole = hashlib.sha256()
    for file in model_files(path):
        try:
            digest = _digest_file(file, folder)
        except OSError as error:
            raise ModelError(f"{file}: {error.strerror}") from None
        whole.update(file.name.encode() + b"\0")
        whole.update(bytes.fromhex(digest))
    return whole.hexdigest()


def model_files(path: Path) -> list[Path]:
    """The files of an IR (given by its ``.xml``) or of a Hugging Face folder.

    Raises:
        ModelError: the path is neither.
    """
    if path.suffix == ".xml":
        weights = path.with_suffix(".bin")
        return [path, weights] if weights.exists() else [path]
    if (path / "config.json").is_file():
        return [path / "config.json", *sorted(path.glob("*.safetensors*"))]
    raise ModelError(
        f"{path}: no model; give an openvino_model.xml, or a folder with config.json and "
        "*.safetensors"
    )


def _digest_file(file: Path, folder: Path | None) -> str:
    place = None
    if folder is not None:
        name = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()
        place = folder / f"{name[:32]}.digest"
    seen = _seen(file)
    kept = None if place is None else _read(place, seen)
    if kept is not None:
        return kept
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    changed = max(seen[-2:])
    if place is not None and _seen(file) == seen and time.time_ns() - changed > _SETTLED_NS:
        _write(place, seen, digest)
    return digest


_Seen = tuple[int, int, int, int, int]
"""What the file system says of a file: device, inode, bytes, and when it was changed, twice."""


class _Kept(BaseModel):
    """A file of the cache."""

    file: _Seen
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


def _seen(file: Path) -> _Seen:
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(place: Path, seen: _Seen) -> str | None:
    """Give the hash that was kept for a file that looks so; None if there is none."""
    try:
        kept = _Kept.model_validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None
    return kept.sha256 if kept.file == seen else None


def _write(place: Path, seen: _Seen, digest: str) -> None:
    """Keep a hash; a disk that is full or read-only keeps none."""
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix=".digest-", dir=place.parent)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(_Kept(file=seen, sha256=digest).model_dump_json())
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
