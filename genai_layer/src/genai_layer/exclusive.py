"""Objects that hold a device's state: for one generation at a time, and never copied."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Never, ParamSpec, SupportsIndex, TypeVar

from genai_layer.errors import BusyError, GenAIUsageError

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self", bound="Exclusive")

_OWNER = "_generation_in_progress"


class Exclusive:
    """A pipeline: methods marked ``one_at_a_time`` exclude one another."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles.

        Raises:
            GenAIUsageError: always.
        """
        raise GenAIUsageError(
            f"{type(self).__name__}: a pipeline holds a device's state and cannot be copied or "
            "pickled; create another one from the same folder"
        )


def one_at_a_time(
    method: Callable[Concatenate[Self, P], R],
) -> Callable[Concatenate[Self, P], R]:
    """Mark a method of a pipeline: it is rejected while another marked method runs.

    A second call, from another thread or from a streamer's callback, is rejected with BusyError:
    both would write to the same KV cache. A signal handler may raise at any moment, so the claim
    is a single call on the object's dictionary, inside the ``try`` that withdraws it.
    """

    @wraps(method)
    def guarded(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        claims: dict[str, Any] = vars(self)
        claim = object()
        try:
            if claims.setdefault(_OWNER, claim) is not claim:
                raise BusyError(
                    f"{type(self).__name__}.{method.__name__}: the pipeline is generating; wait "
                    "for the end, or create a pipeline for each thread"
                )
            return method(self, *args, **kwargs)
        finally:
            if claims.get(_OWNER) is claim:
                del claims[_OWNER]

    return guarded
