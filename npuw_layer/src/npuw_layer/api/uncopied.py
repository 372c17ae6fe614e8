"""Base class of objects that hold a device's memory: neither copied nor pickled."""

from __future__ import annotations

from typing import Never, SupportsIndex

from npuw_layer.errors import RequestError


class Uncopied:
    """An object that copy, deepcopy and pickle reject with a typed error."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles.

        Raises:
            RequestError: always.
        """
        raise RequestError(
            f"{type(self).__name__}: it holds a device's memory and cannot be copied or pickled; "
            "make another one"
        )
