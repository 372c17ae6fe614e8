"""Objects that hold a device's state: for one generation at a time, and never copied.

A pipeline also keeps a chat between ``start_chat`` and ``finish_chat``.

Source: openvino_genai, docs/reference/genai.md#chat-history.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, Never, ParamSpec, SupportsIndex, TypeVar

from genai_layer.chat_history import ChatHistory
from genai_layer.checked import checked
from genai_layer.errors import BusyError, GenAIUsageError, PromptError

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


class KeepsChat(Exclusive):
    """Pipeline with a started chat, to which each generation adds a turn."""

    _chat: ChatHistory | None = None
    """The started chat; replaced as a whole after each turn."""

    @one_at_a_time
    @checked
    def start_chat(self, system_message: str = "") -> None:
        """Begin a conversation: texts passed to ``generate`` become its turns."""
        _warn("start_chat", stacklevel=5)
        messages = [{"role": "system", "content": system_message}] if system_message else []
        self._chat = ChatHistory(messages)

    @one_at_a_time
    def finish_chat(self) -> None:
        """End and forget the conversation."""
        _warn("finish_chat", stacklevel=4)
        self._chat = None
        self._forget_tokens()

    def _forget_tokens(self) -> None:
        """Forget the tokens that the model has stored, if only this pipeline's chat uses them."""


def with_turn(chat: ChatHistory, texts: Sequence[str]) -> ChatHistory:
    """Return a chat with a user's turn added.

    Raises:
        PromptError: there are several texts.
    """
    if len(texts) != 1:
        raise PromptError(f"{len(texts)} texts in a chat: pass one text per turn")
    return ChatHistory([*chat.get_messages(), {"role": "user", "content": texts[0]}])


def _warn(name: str, stacklevel: int) -> None:
    """Warn that a method is deprecated.

    Args:
        name: of the method.
        stacklevel: that of the method's caller, above the method and its decorators.
    """
    warnings.warn(
        f"{name} is deprecated, as in openvino_genai; pass a ChatHistory to generate",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
