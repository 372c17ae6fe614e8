"""Files of programs that only their owner's functions can read: CACHE_ENCRYPTION_CALLBACKS.

An unencrypted header marks the file as encrypted and has the digest of the encrypted bytes, which
distinguishes damage from a wrong key. The rest is a complete file of programs, encrypted by the
owner's function.
"""

from __future__ import annotations

import io
import mmap
from collections.abc import Callable, Sequence
from typing import BinaryIO, cast

from driver_layer.support.files import content_digest
from npuw_layer.errors import BlobError, DamagedBlob, OptionError
from npuw_layer.storage.container import MAGIC, HeaderFormat, write_container
from npuw_layer.storage.manifest import Manifest

OPTION = "CACHE_ENCRYPTION_CALLBACKS"

Callbacks = Sequence[Callable[[bytes], bytes]]
"""Functions that encrypt and decrypt; without any, files stay unencrypted."""

_HEADER = HeaderFormat(MAGIC + b"SECRET", (1, 0), "Q32s", "encryption")
"""Header; further fields: number of encrypted bytes, and their SHA-256."""


def is_encrypted(data: memoryview) -> bool:
    """Return whether a file of programs is encrypted."""
    return _HEADER.begins(data)


def write_programs(
    file: BinaryIO,
    kind: bytes,
    manifest: Manifest,
    programs: Sequence[bytes | memoryview],
    callbacks: Callbacks,
) -> str:
    """Write a file of programs, encrypted if callbacks are set; return the manifest's digest.

    Raises:
        OptionError: the owner's function fails.
        OSError: the file cannot be written.
    """
    if not callbacks:
        return write_container(file, kind, manifest, programs)
    plain = io.BytesIO()
    digest = write_container(plain, kind, manifest, programs)
    file.write(encrypt(plain.getvalue(), callbacks))
    return digest


def encrypt(content: bytes, callbacks: Callbacks) -> bytes:
    """Encrypt a file of programs.

    Raises:
        OptionError: the owner's function fails.
    """
    secret = encrypted(content, callbacks)
    digest = content_digest([secret])
    return _HEADER.pack(len(secret), digest) + secret


def decrypt(data: memoryview, callbacks: Callbacks) -> memoryview:
    """Return a file of programs decrypted and page-aligned; an unencrypted file unchanged.

    Raises:
        BlobVersionError: another version encrypted the file.
        BlobError: the file is damaged, or the owner's functions are missing or fail.
    """
    if not is_encrypted(data):
        return data
    size, digest = _HEADER.unpack(data)
    secret = data[_HEADER.size :]
    if len(secret) != size or content_digest([secret]) != digest:
        raise DamagedBlob("the encrypted bytes are damaged")
    return decrypted(secret, callbacks)


def encrypted(content: bytes, callbacks: Callbacks) -> bytes:
    """Return the bytes encrypted by the owner's function.

    Raises:
        OptionError: the function fails.
    """
    secret = _call(callbacks[0], content)
    if isinstance(secret, str):
        raise OptionError(f"{OPTION}: encrypting failed: {secret}")
    return secret


def decrypted(secret: bytes | memoryview, callbacks: Callbacks) -> memoryview:
    """Return the bytes decrypted by the owner's function, page-aligned.

    Raises:
        BlobError: the owner's functions are missing or fail.
    """
    if not callbacks:
        raise BlobError(f"it is encrypted; set {OPTION} to the functions that it was written with")
    content = _call(callbacks[1], bytes(secret))
    if isinstance(content, str):
        raise BlobError(f"{OPTION}: decrypting failed: {content}")
    if not content:
        raise BlobError(f"{OPTION}: decrypting returned no bytes")
    place = memoryview(mmap.mmap(-1, len(content)))
    place[:] = content
    return place.toreadonly()


def _call(function: Callable[[bytes], bytes], content: bytes) -> bytes | str:
    """Call the owner's function; return any error as text."""
    try:
        made = cast(object, function(content))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(made, bytes | bytearray):
        return f"it returned {type(made).__name__}, not bytes"
    return bytes(made)
