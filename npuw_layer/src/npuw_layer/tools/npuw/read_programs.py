"""Reads files of programs of any kind, for commands that look into them."""

from __future__ import annotations

from npuw_layer.storage.container import (
    MODEL,
    STAGE,
    STATIC,
    Container,
    kind_of,
    read_container,
)
from npuw_layer.storage.encryption import decrypt
from npuw_layer.storage.manifest import EntryManifest, ModelManifest

KINDS = {
    STAGE: "an entry of the cache",
    MODEL: "a language model",
    STATIC: "a static model through NPUW",
}
"""What files of NPUW are called."""


def read_programs(content: memoryview) -> Container[EntryManifest] | Container[ModelManifest]:
    """Read a file of NPUW, which is not encrypted.

    Raises:
        BlobError: it is none, or damaged.
    """
    clear = decrypt(content, ())
    kind = kind_of(clear)
    if kind in (MODEL, STATIC):
        return read_container(clear, kind, ModelManifest)
    return read_container(clear, STAGE, EntryManifest)
