"""Tools of other types than functions, e.g. a web search that OpenAI's servers run.

Clients that were written for these servers send such tools beside functions. The model gets the
functions alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeVar

from genai_layer.serve.openai.schemas.tools import OtherTool

T = TypeVar("T")

_log = logging.getLogger(__name__)
_reported = set[str]()
"""Types that the log has reported."""
_MOST_REPORTED = 64
"""Bound of these, as clients name types at will."""


def functions_among(tools: Sequence[T | OtherTool]) -> list[T]:
    """Return the functions among tools; the log reports each other type once."""
    found: list[T] = []
    for tool in tools:
        if isinstance(tool, OtherTool):
            _report(tool.type)
        else:
            found.append(tool)
    return found


def _report(kind: str) -> None:
    if kind not in _reported and len(_reported) < _MOST_REPORTED:
        _reported.add(kind)
        _log.warning("tools: type %r is left out; the model can call functions only", kind)
