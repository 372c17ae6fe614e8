"""Our own section of a native blob: data without a field in the plugin's metadata.

    8 bytes    "NPUWMORE"
    u16, u16   its version, 1.0
    u64        bytes of the manifest
    32 bytes   SHA-256 of the manifest
    32 bytes   SHA-256 of the blob's metadata
    manifest   JSON, as of every exported model (``storage.manifest``): digests of ELF and initial
               values, versions, options, the files that have the weights
    values     initial values of variables (``kinds.static.initial_values``)

The digests reveal any damage, in the payload and in the metadata. If the payload is encrypted, the
complete section is encrypted, too, in the form of ``storage.encryption``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.support.files import content_digest
from npuw_layer.errors import DamagedBlob
from npuw_layer.storage.container import HeaderFormat, read_manifest
from npuw_layer.storage.encryption import Callbacks, decrypt, encrypt, is_encrypted
from npuw_layer.storage.manifest import ModelManifest

_HEADER = HeaderFormat(b"NPUWMORE", (1, 0), "Q32s32s", "section")


@dataclass(frozen=True, slots=True)
class Section:
    """Content of the section; parts are not verified yet.

    Attributes:
        manifest: manifest of a program and its initial values.
        digest: the manifest's digest.
        values: the initial values, packed.
    """

    manifest: ModelManifest
    digest: str
    values: memoryview


def write_section(
    manifest: ModelManifest, described: bytes, values: bytes | memoryview, callbacks: Callbacks
) -> bytes:
    """Return the bytes of a section.

    Args:
        manifest: manifest of a program and its initial values.
        described: the metadata's bytes.
        values: the initial values.
        callbacks: the owner's functions, if the payload is encrypted.

    Raises:
        OptionError: the owner's function fails.
    """
    text = manifest.model_dump_json().encode()
    digests = [content_digest([part]) for part in (text, described)]
    whole = _HEADER.pack(len(text), *digests) + text + bytes(values)
    return encrypt(whole, callbacks) if callbacks else whole


def read_section(
    behind: memoryview, described: memoryview, encrypted: bool, callbacks: Callbacks
) -> Section | None:
    """Read the section between metadata and footer; None for no bytes or only zeros.

    Args:
        behind: the bytes.
        described: the metadata's bytes.
        encrypted: whether the metadata marks the payload as encrypted.
        callbacks: the owner's functions.

    Raises:
        BlobVersionError: the section has another version.
        DamagedBlob: the section is damaged or unknown, or the metadata has another digest.
    """
    if not np.frombuffer(behind, np.uint8).any():
        return None
    if is_encrypted(behind) != encrypted:
        raise DamagedBlob("either its payload or its section is encrypted, not both")
    content = decrypt(behind, callbacks)
    if len(content) < _HEADER.size or not _HEADER.begins(content):
        raise DamagedBlob("the bytes behind its metadata are neither zeros nor a section")
    size, digest, metadata_digest = _HEADER.unpack(content)
    if content_digest([described]) != metadata_digest:
        raise DamagedBlob("its metadata is damaged")
    end = _HEADER.size + size
    manifest = read_manifest(content[_HEADER.size : end], digest, ModelManifest)
    return Section(manifest, digest.hex(), content[end:])
