"""Notes: the versions of loader and mapped inference that a blob was written for, and its digest.

The versions of each generation are stated in its platform (``driver_layer.abi.platforms``).
Source: docs/reference/elf.md#version-notes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from driver_layer.abi.layout import filled, record

NOTE = record(
    32,
    ("namesz", 0, "<u4"),
    ("descsz", 4, "<u4"),
    ("type", 8, "<u4"),
    ("name", 12, "S4"),
    ("desc", 16, ("<u4", (4,))),
)
"""One note; the ``desc`` of a version is mode word, major, minor, patch."""

NT_LOADER_ABI_VERSION = 1
NT_MAPPED_INFERENCE_VERSION = 0xA000
NT_CONTENT_DIGEST = 0xD165
"""A type of this project; public loaders skip notes of unknown types."""
CONTENT_DIGEST = "note.ContentDigest"
"""Name of the section with the digest note."""
NOTE_OWNER = b"NPU"

DIGEST_BYTES = 16
"""Length of a digest: the first bytes, as many as a note holds, of the SHA-256 of the complete
file, with zeros in place of the digest."""


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version: a new major breaks the format, a new minor extends it, a patch leaves it."""

    major: int
    minor: int
    patch: int

    @staticmethod
    def parse(text: str) -> Version | None:
        """Parse a version in the form of ``str``; None if the text is not a version."""
        found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})", text)
        return None if found is None else Version(*map(int, found.groups()))

    def accepts(self, blob: Version) -> bool:
        """Return whether a loader of this version may load a blob of the given version."""
        return blob.major == self.major != 0 and blob.minor <= self.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def encode_note(kind: int, version: Version) -> bytes:
    """Encode the content of a version note's section, 32 bytes."""
    return _encode(
        kind, np.array([0, version.major, version.minor, version.patch], "<u4").tobytes()
    )


def encode_digest(digest: bytes) -> bytes:
    """Encode the content of the digest note's section, 32 bytes."""
    return _encode(NT_CONTENT_DIGEST, digest[:DIGEST_BYTES])


def _encode(kind: int, content: bytes) -> bytes:
    return filled(
        NOTE,
        namesz=len(NOTE_OWNER) + 1,
        descsz=len(content),
        type=kind,
        name=NOTE_OWNER,
        desc=np.frombuffer(content, "<u4"),
    ).tobytes()
