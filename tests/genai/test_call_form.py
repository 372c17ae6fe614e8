"""Calls of a constructor with several forms."""

from __future__ import annotations

import pytest

from genai_layer.call_form import call_form


def form(first: int, second: int = 2, **rest: int) -> tuple[int, int, dict[str, int]]:
    return first, second, rest


def test_arguments_reach_the_form() -> None:
    assert call_form("Pipe", form, [1], {"other": 3}) == (1, 2, {"other": 3})


@pytest.mark.parametrize(
    ("given", "named", "problem"),
    [
        ([], {}, "missing a required argument: 'first'"),
        ([1, 2, 3], {}, "too many positional arguments"),
        ([1], {"first": 1}, "multiple values for argument 'first'"),
    ],
)
def test_wrong_calls_name_the_class(given, named, problem) -> None:
    with pytest.raises(TypeError, match=rf"Pipe: {problem}; see help\(Pipe\)"):
        call_form("Pipe", form, given, named)


def test_an_error_of_the_form_itself_is_unchanged() -> None:
    def fails() -> None:
        raise TypeError("inside")

    with pytest.raises(TypeError, match=r"^inside$"):
        call_form("Pipe", fails, [], {})
