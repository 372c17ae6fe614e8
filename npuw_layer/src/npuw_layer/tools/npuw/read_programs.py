"""Reader of files of programs of any kind, for commands that inspect them."""

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
"""Names of the kinds of NPUW's files."""


def read_programs(content: memoryview) -> Container[EntryManifest] | Container[ModelManifest]:
    """Read an unencrypted file of NPUW.

    Raises:
        BlobError: the file is not one of NPUW's, or damaged.
    """
    clear = decrypt(content, ())
    kind = kind_of(clear)
    if kind in (MODEL, STATIC):
        return read_container(clear, kind, ModelManifest)
    return read_container(clear, STAGE, EntryManifest)
