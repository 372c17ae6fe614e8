"""Verification of a blob's content against the digest in the blob, if it has one.

The digest note is npuc's own. Blobs of other compilers have none, so damage of their content cannot
be detected. Loading does not verify the digest: code that stores blobs verifies them.
"""

from __future__ import annotations

from driver_layer.abi.elf import SectionType
from driver_layer.abi.layout import field_offset
from driver_layer.abi.notes import CONTENT_DIGEST, DIGEST_BYTES, NOTE, NT_CONTENT_DIGEST
from driver_layer.errors import BlobError
from driver_layer.loader.read import Buffer, Section, read_blob
from driver_layer.support.files import content_digest


def check_content(data: Buffer) -> int | None:
    """Verify a blob's content; return the end of its last section, None if it has no digest.

    Raises:
        BlobError: the blob is malformed, or its content does not match the digest.
    """
    view = memoryview(data).toreadonly().cast("B")
    blob = read_blob(view)
    # By its section's name or by its type, as either may be damaged.
    note = next((section for section in blob.sections if _is_digest(section)), None)
    if note is None:
        return None
    begin = note.offset + field_offset(NOTE, "desc")
    behind = begin + DIGEST_BYTES
    end = max(section.offset + len(section.data) for section in blob.sections)
    if behind > end:
        raise BlobError("the digest is located outside the file: the blob is damaged")
    found = content_digest((view[:begin], bytes(DIGEST_BYTES), view[behind:end]))
    if found[:DIGEST_BYTES] != bytes(view[begin:behind]):
        raise BlobError("the content does not match the digest: the blob is damaged")
    return end


def _is_digest(section: Section) -> bool:
    if section.name == CONTENT_DIGEST:
        return True
    is_note = section.type == SectionType.SHT_NOTE and section.size == NOTE.itemsize
    return is_note and section.records(NOTE)["type"][0] == NT_CONTENT_DIGEST
