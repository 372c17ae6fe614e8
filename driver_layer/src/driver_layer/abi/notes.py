"""Notes: which loader and which mapped-inference layout a blob was written for, and its digest.

The versions of each generation are facts of its platform (``driver_layer.abi.platforms``).

Source: fact sheet elf_driver §1.7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from driver_layer.abi.layout import record

NOTE = record(
    32,
    ("namesz", 0, "<u4"),
    ("descsz", 4, "<u4"),
    ("type", 8, "<u4"),
    ("name", 12, "S4"),
    ("desc", 16, ("<u4", (4,))),
)
"""One note; of a version ``desc`` is mode word, major, minor, patch."""

NT_LOADER_ABI_VERSION = 1
NT_MAPPED_INFERENCE_VERSION = 0xA000
NT_CONTENT_DIGEST = 0xD165
"""Ours; public loaders pass over notes of types that they do not look for."""
CONTENT_DIGEST = "note.ContentDigest"
"""The name of its section."""
NOTE_OWNER = b"NPU"

DIGEST_BYTES = 16
"""All that a note has room for: the first bytes of the SHA-256 of all of the file, for which the
digest itself counts as zeros."""


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version: a new major breaks, a new minor adds, a new patch changes no format."""

    major: int
    minor: int
    patch: int

    @staticmethod
    def parse(text: str) -> Version | None:
        """Read a version as ``str`` writes it; None if the text is no version."""
        found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})", text)
        return None if found is None else Version(*map(int, found.groups()))

    def accepts(self, blob: Version) -> bool:
        """Tell whether a loader of this version may load a blob of that one."""
        return blob.major == self.major != 0 and blob.minor <= self.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def encode_note(kind: int, version: Version) -> bytes:
    """Write one version note section's content, 32 bytes."""
    return _encode(
        kind, np.array([0, version.major, version.minor, version.patch], "<u4").tobytes()
    )


def encode_digest(digest: bytes) -> bytes:
    """Write the content of the note section that has the file's digest, 32 bytes."""
    return _encode(NT_CONTENT_DIGEST, digest[:DIGEST_BYTES])


def _encode(kind: int, content: bytes) -> bytes:
    note = np.zeros(1, NOTE)
    note["namesz"] = len(NOTE_OWNER) + 1
    note["descsz"] = len(content)
    note["type"] = kind
    note["name"] = NOTE_OWNER
    note["desc"] = np.frombuffer(content, "<u4")
    return note.tobytes()
