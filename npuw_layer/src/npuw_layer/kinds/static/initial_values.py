"""Initial values of a stateful model's variables, as files store them; see ``prepare``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import BlobError

PROGRAM, VALUES = PARTS = ("program", "initial values")
"""The parts of a static model in files."""

_NAMES = "names"


def pack_values(values: Mapping[str, Array]) -> bytes:
    """Pack named arrays into the bytes of a file."""
    file = io.BytesIO()
    numbered = {str(index): value for index, value in enumerate(values.values())}
    names = np.array(list(values), dtype=np.str_)
    np.savez(file, allow_pickle=False, **{_NAMES: names}, **numbered)
    return file.getvalue()


def unpack_values(content: bytes | memoryview) -> dict[str, Array]:
    """Unpack untrusted bytes in the format of ``pack_values``.

    Raises:
        BlobError: the bytes have another format.
    """
    try:
        with ZipFile(io.BytesIO(content)) as packed:
            if any(entry.compress_type != ZIP_STORED for entry in packed.infolist()):
                raise ValueError("the values are compressed")  # Their unpacked size is unknown.
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            names = [str(name) for name in held[_NAMES]]
            return {name: held[str(index)] for index, name in enumerate(names)}
    except Exception as error:
        # numpy and zipfile raise errors of many types on malformed files.
        raise BlobError(f"invalid initial values: {error}") from None
