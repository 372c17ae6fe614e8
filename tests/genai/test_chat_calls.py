"""Warnings of start_chat and finish_chat."""

from __future__ import annotations

import pytest

from genai_layer.chat_calls import warn_of_chat_call
from genai_layer.exclusive import Exclusive, one_at_a_time


class Pipeline(Exclusive):
    @one_at_a_time
    def start_chat(self) -> None:
        warn_of_chat_call("start_chat")


def test_the_warning_names_the_callers_file() -> None:
    with pytest.warns(DeprecationWarning, match="start_chat is deprecated") as caught:
        Pipeline().start_chat()
    assert caught[0].filename == __file__
