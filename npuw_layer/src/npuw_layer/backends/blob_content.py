"""The content of a blob that comes without a manifest, held against the digest that npuc wrote."""

from __future__ import annotations

from driver_layer.errors import BlobError as LoaderError
from driver_layer.loader.content import check_content
from npuw_layer.errors import DamagedBlob
from npuw_layer.storage.container import PAGE
from npuw_layer.storage.native_blob.container import ends_natively


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
