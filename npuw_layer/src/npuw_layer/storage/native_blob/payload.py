"""What of a native blob runs: one ELF, in clear, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.errors import BlobError as LoaderError
from driver_layer.loader.content import check_content
from npuw_layer.errors import BlobError, DamagedBlob
from npuw_layer.options import Options
from npuw_layer.storage.container import PAGE, Place
from npuw_layer.storage.encryption import decrypted
from npuw_layer.storage.native_blob.container import ends_natively, read_blob
from npuw_layer.storage.native_blob.metadata import ANY_BATCH, BlobType, Metadata
from npuw_layer.storage.native_blob.section import Section, read_section


@dataclass(frozen=True, slots=True)
class Payload:
    """What was found in a native blob, or all of a raw one.

    Attributes:
        place: the ELF, and what it was filled up with.
        metadata: what the original's fields say of it; None if there are none, or unknown ones.
        section: what ours says.
    """

    place: Place
    metadata: Metadata | None = None
    section: Section | None = None


def open_payload(content: memoryview, options: Options) -> Payload:
    """Find what runs.

    Args:
        content: all bytes of the blob.
        options: whether it is raw, any version is taken, and who decrypts it.

    Raises:
        BlobVersionError: its metadata has a version that is not known.
        BlobError: it is damaged, nobody decrypts it, or no such payload runs here.
    """
    if not content:
        raise BlobError("it is empty")
    callbacks = options.encryption
    # The original takes all of a file for the payload if versions do not count, footer or not.
    if options.import_raw_blob or (options.disable_version_check and not ends_natively(content)):
        # As the original does: nothing says whether it is encrypted, but that there is a key.
        content = decrypted(content, callbacks) if callbacks else content
        return Payload(Place(content, 0, len(content)))
    blob = read_blob(content, options.disable_version_check)
    metadata, place = blob.metadata, blob.payload
    if metadata is None:
        return Payload(place)
    _check_runs(metadata)
    if metadata.encrypted:
        clear = decrypted(place.view, callbacks)
        place = Place(clear, 0, len(clear))
    section = read_section(blob.behind, blob.described, metadata.encrypted, callbacks)
    return Payload(place, metadata, section)


def _check_runs(metadata: Metadata) -> None:
    """See that the payload is one program for the NPU.

    Raises:
        BlobError: it is something else that the original knows.
    """
    problem = ""
    if metadata.blob_type is not BlobType.ELF:
        problem = (
            f"its payload is {metadata.blob_type.name}, code for the host, which no blob may bring "
            "here; compile it for the NPU"
        )
    elif metadata.init_sizes:
        problem = (
            f"it has {len(metadata.init_sizes)} init schedules, programs that prepare weights; "
            "here programs take weights as they are: export it with CACHE_MODE = OPTIMIZE_SPEED"
        )
    elif metadata.batch is not None and metadata.batch < ANY_BATCH:
        problem = f"it is to be run for each of a batch of {metadata.batch}, which is none"
    if problem:
        raise BlobError(problem)


def check_payload(payload: memoryview) -> None:
    """Verify an ELF, and zeros up to a page; those of other compilers have no digest.

    Raises:
        DamagedBlob: it is damaged, or bytes were appended to it.
    """
    try:
        end = check_content(payload)
    except LoaderError as error:
        raise DamagedBlob(f"its payload cannot be used: {error}") from error
    if end is None or ends_natively(payload):  # all of a native blob may be given as a payload
        return
    behind = payload[end:]
    if len(behind) not in (0, -end % PAGE) or any(behind):
        raise DamagedBlob(f"{len(behind)} bytes follow its payload")
