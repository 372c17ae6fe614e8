"""Initial values of a stateful model's variables, the part of its files beside its program.

OpenVINO computes a variable's initial value anew when it is first read after a reset. On the NPU a
variable is memory, so that its initial value has to be known before: it is computed once, here, and
may depend on the shapes of the inputs, as exporters write it, but not on what is in them.
"""

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
    """Make a file of arrays by name."""
    file = io.BytesIO()
    numbered = {str(index): value for index, value in enumerate(values.values())}
    names = np.array(list(values), dtype=np.str_)
    np.savez(file, allow_pickle=False, **{_NAMES: names}, **numbered)
    return file.getvalue()


def unpack_values(content: bytes | memoryview) -> dict[str, Array]:
    """Read what ``pack_values`` made; nothing of it is believed.

    Raises:
        BlobError: it is something else.
    """
    try:
        with ZipFile(io.BytesIO(content)) as packed:
            if any(entry.compress_type != ZIP_STORED for entry in packed.infolist()):
                raise ValueError("they are compressed")  # who knows how long they are
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            names = [str(name) for name in held[_NAMES]]
            return {name: held[str(index)] for index, name in enumerate(names)}
    except Exception as error:
        # What numpy and zipfile meet in such a file they raise as whatever they like.
        raise BlobError(f"no initial values: {error}") from None
