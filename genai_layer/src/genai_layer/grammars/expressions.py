"""Expressions of a grammar: the common form of regular expressions, EBNF and structural tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points, both ends included."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Exact text; it may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One character of the ranges, or one of all others."""

    ranges: Ranges
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts in order; without parts, the empty text."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options."""

    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From ``least`` to ``most`` times the body; None is no limit."""

    body: Expression
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A rule of the grammar."""

    rule: str


@dataclass(frozen=True, slots=True)
class FreeText:
    """Any text up to the end of the answer."""


@dataclass(frozen=True, slots=True)
class TextUntil:
    """Any text through the first of the ends; none of them is empty."""

    ends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value of a schema, in llguidance's dialect."""

    schema: Any


Expression = (
    Literal | CharacterClass | Sequence | Choice | Repeat | Reference | FreeText | TextUntil | Json
)

Rules = dict[str, Expression]
"""Expressions of a grammar by name."""


def children(expression: Expression) -> Iterator[Expression]:
    """Yield the direct parts of an expression."""
    match expression:
        case Sequence(parts) | Choice(parts):
            yield from parts
        case Repeat(body):
            yield body
        case _:
            pass


def repeated(body: Expression, least: int, most: int | None) -> Expression:
    """Return a repetition; at most 0 times is the empty text, as llguidance rejects the form."""
    return Sequence(()) if most == 0 else Repeat(body, least, most)


def either(texts: tuple[str, ...]) -> Expression:
    """Return a choice of exact texts, or the only one."""
    options = tuple(Literal(text) for text in texts)
    return options[0] if len(options) == 1 else Choice(options)


def renamed(expression: Expression, prefix: str) -> Expression:
    """Return an expression with a prefix before the names of rules."""
    match expression:
        case Reference(rule):
            return Reference(prefix + rule)
        case Sequence(parts):
            return Sequence(tuple(renamed(part, prefix) for part in parts))
        case Choice(options):
            return Choice(tuple(renamed(option, prefix) for option in options))
        case Repeat(body, least, most):
            return Repeat(renamed(body, prefix), least, most)
        case _:
            return expression
