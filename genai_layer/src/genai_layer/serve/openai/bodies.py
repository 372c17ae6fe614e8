"""Bodies of requests: bounded by their parts, then parsed and validated, off the event loop.

How it works. Parsing and validation hold the interpreter's lock, and each part of a body costs far
more memory than its characters. So parts are counted in the text of a body before it is parsed.
The arguments of an earlier call are JSON in a text: their parts count, too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from genai_layer.serve.errors import BadRequest, ServeError
from genai_layer.serve.openai.validation import rejection
from genai_layer.serve.workers import Workers

MOST_VALUES = 1 << 18
"""Values of a body, e.g. ids of a prompt."""
MOST_CONTAINERS = 1 << 14
"""Objects and lists of a body."""
MOST_KEYS = 1 << 12
"""Keys of an object."""
MOST_LEVELS = 512
"""Objects and lists around a value; the parser itself ends not far beyond."""

_SYMBOLS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?\s*+(:?)|[\[{]|[\]}]|[^"\[\]{}]++', re.DOTALL)
"""Symbols of JSON: a string, a key if a colon follows; a bracket; what separates these."""

_ARGUMENTS = b"arguments"
"""Key of a text that is JSON."""
_CONTAINERS = (b"{", b"[", rb"\u007b", rb"\u005b", rb"\u007B", rb"\u005B")
_COMMAS = (b",", rb"\u002c", rb"\u002C")
"""Ways to write what begins and separates parts; JSON in a text may have escapes."""

_WORKERS = Workers()


class BodyRoute(APIRoute):
    """Route whose JSON body is bounded, parsed and validated in a thread."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request."""
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer
        body: Any = self.body_field.field_info.annotation
        kind = TypeAdapter[Any](body)

        async def read_and_answer(request: Request) -> Response:
            try:
                return await answer(_Reading(request, kind))
            except HTTPException as error:
                if isinstance(error.__cause__, ServeError):  # FastAPI replaces errors of a body
                    raise error.__cause__ from None
                raise

        return read_and_answer


class _Reading(Request):
    """Request whose JSON is a validated body.

    Args:
        request: the request.
        kind: type of the body.
    """

    def __init__(self, request: Request, kind: TypeAdapter[Any]) -> None:
        super().__init__(request.scope, request.receive)
        self._kind = kind

    async def json(self) -> Any:
        """Return the body; FastAPI takes a validated one as it is."""
        body = await self.body()
        return await _WORKERS.run(len(body), partial(read_body, body, self._kind))


def read_body(body: bytes, kind: TypeAdapter[Any]) -> Any:
    """Return a validated body.

    Args:
        body: JSON.
        kind: type of the body.

    Raises:
        BadRequest: the body has too many parts or levels, is no JSON, or has a wrong field.
    """
    check_parts(body)
    given = _parsed(body)
    try:
        return kind.validate_python(given)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        places = [{**one, "loc": ("body", *one["loc"])} for one in errors]
        raise rejection(places, given) from None


def _parsed(body: bytes) -> Any:
    """Return the JSON of a body.

    Raises:
        BadRequest: the body is no JSON, or has a number that is too long.
    """
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _no_json() from error
    except ValueError as error:  # of int, as documented in Python's sys.set_int_max_str_digits
        most = sys.get_int_max_str_digits()
        raise BadRequest(f"body: an integer has more than {most} digits; send less") from error


def _no_json() -> BadRequest:
    return BadRequest("body: the body is no JSON; send a JSON object")


def check_parts(body: bytes) -> None:
    """Reject JSON with too many parts, by the name of the field that exceeds a bound.

    Raises:
        BadRequest: there are too many, or the text is no JSON.
    """
    if _is_small(body):
        return
    counts = _Counts()
    for found in _SYMBOLS.finditer(body):
        counts.add(found[0], bool(found[1]))


def _is_small(body: bytes) -> bool:
    """Return whether not even all characters of a body, also those in texts, exceed a bound."""
    containers = _count(_CONTAINERS, body)
    return (
        containers <= min(MOST_CONTAINERS, MOST_LEVELS)
        and _count(_COMMAS, body) + containers <= MOST_VALUES
        and body.count(b":") <= MOST_KEYS
    )


def _count(symbols: Iterable[bytes], text: bytes) -> int:
    return sum(map(text.count, symbols))


class _Counts:
    """Counts of the parts of JSON so far."""

    def __init__(self) -> None:
        self._values = self._containers = 0
        self._keys = [0]
        """Keys of each object that is open, after a 0 for the text around the body."""
        self._json_in_text = False
        """True after a key of JSON in a text; one with escapes may be such a key."""
        self._field: str | None = None
        """Field of the body that the last part belongs to."""

    def add(self, symbol: bytes, is_key: bool) -> None:
        """Count a symbol of the text.

        Raises:
            BadRequest: there are too many parts, or a bracket closes nothing.
        """
        if is_key:
            self._add_key(symbol.rpartition(b'"')[0][1:])
        elif symbol[:1] != b'"' or self._json_in_text:
            self._add_parts(symbol)

    def _add_key(self, key: bytes) -> None:
        self._json_in_text = key == _ARGUMENTS or b"\\" in key
        self._keys[-1] += 1
        if len(self._keys) == 2:
            self._field = key.decode(errors="replace")
        self._check(self._keys[-1], MOST_KEYS, "keys in an object")

    def _add_parts(self, symbol: bytes) -> None:
        """Count the parts of a symbol: a bracket, what separates parts, or JSON in a text."""
        containers = _count(_CONTAINERS, symbol)
        self._containers += containers
        self._values += containers + _count(_COMMAS, symbol)
        self._check(self._containers, MOST_CONTAINERS, "objects and lists")
        self._check(self._values, MOST_VALUES, "values")
        if symbol in (b"{", b"["):
            self._keys.append(0)
            self._check(len(self._keys) - 1, MOST_LEVELS, "levels of objects and lists")
        elif symbol in (b"}", b"]"):
            self._keys.pop()
            if not self._keys:
                raise _no_json()

    def _check(self, count: int, most: int, what: str) -> None:
        if count > most:
            raise BadRequest(
                f"{self._field or 'body'}: more than {most} {what}; send less in a request",
                param=self._field,
            )
