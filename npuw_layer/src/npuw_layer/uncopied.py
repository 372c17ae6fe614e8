"""Objects that hold a device's memory, and so are neither copied nor pickled."""

from __future__ import annotations

from typing import Never, SupportsIndex

from npuw_layer.errors import RequestError


class Uncopied:
    """An object of which there is one: copy, deepcopy and pickle reject it in words."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles.

        Raises:
            RequestError: always.
        """
        raise RequestError(
            f"{type(self).__name__}: it holds a device's memory and cannot be copied or pickled; "
            "make another one"
        )
