"""The part of a native blob that runs: one ELF, decrypted, and its descriptions."""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.errors import BlobError as LoaderError
from driver_layer.loader.content import check_content
from npuw_layer.errors import BlobError, DamagedBlob
from npuw_layer.options import Options
from npuw_layer.storage.container import PAGE, ByteRange
from npuw_layer.storage.encryption import decrypted
from npuw_layer.storage.native_blob.container import ends_natively, read_blob
from npuw_layer.storage.native_blob.metadata import ANY_BATCH, BlobType, Metadata
from npuw_layer.storage.native_blob.section import Section, read_section


@dataclass(frozen=True, slots=True)
class Payload:
    """Content of a native blob, or all bytes of a raw blob.

    Attributes:
        place: the ELF and its padding.
        metadata: the plugin's fields; None if they are missing or of an unknown version.
        section: our section; None if it is missing.
    """

    place: ByteRange
    metadata: Metadata | None = None
    section: Section | None = None


def open_payload(content: memoryview, options: Options) -> Payload:
    """Find the payload of a blob, and decrypt it.

    Args:
        content: all bytes of the blob.
        options: raw blob or not, version check or not, and the callbacks.

    Raises:
        BlobVersionError: the metadata's version is unknown.
        BlobError: the blob is damaged, cannot be decrypted, or its payload cannot run here.
    """
    if not content:
        raise BlobError("it is empty")
    callbacks = options.encryption
    # Without version checks, OpenVINO's plugin treats a file without a footer as a payload.
    if options.import_raw_blob or (options.disable_version_check and not ends_natively(content)):
        # As in the plugin, only the presence of a key indicates encryption.
        content = decrypted(content, callbacks) if callbacks else content
        return Payload(ByteRange(content, 0, len(content)))
    blob = read_blob(content, options.disable_version_check)
    metadata, place = blob.metadata, blob.payload
    if metadata is None:
        return Payload(place)
    _check_runs(metadata)
    if metadata.encrypted:
        clear = decrypted(place.view, callbacks)
        place = ByteRange(clear, 0, len(clear))
    section = read_section(blob.behind, blob.described, metadata.encrypted, callbacks)
    return Payload(place, metadata, section)


def _check_runs(metadata: Metadata) -> None:
    """Check that the payload is one program for the NPU.

    Raises:
        BlobError: the payload is of a kind that only OpenVINO's plugin supports.
    """
    problem = ""
    if metadata.blob_type is not BlobType.ELF:
        problem = (
            f"its payload is {metadata.blob_type.name}, code for the host, which is never loaded "
            "here; compile it for the NPU"
        )
    elif metadata.init_sizes:
        problem = (
            f"it has {len(metadata.init_sizes)} init schedules, programs that convert weights, "
            "which are not supported; export it with CACHE_MODE = OPTIMIZE_SPEED"
        )
    elif metadata.batch is not None and metadata.batch < ANY_BATCH:
        problem = f"its batch of {metadata.batch} is not a number of items"
    if problem:
        raise BlobError(problem)


def check_payload(payload: memoryview) -> None:
    """Verify an ELF, and zeros up to a page; ELFs of other compilers have no digest.

    Raises:
        DamagedBlob: it is damaged, or bytes were appended to it.
    """
    try:
        end = check_content(payload)
    except LoaderError as error:
        raise DamagedBlob(f"its payload cannot be used: {error}") from error
    if end is None or ends_natively(payload):  # a complete native blob may be passed as a payload
        return
    behind = payload[end:]
    if len(behind) not in (0, -end % PAGE) or any(behind):
        raise DamagedBlob(f"{len(behind)} bytes follow its payload")
