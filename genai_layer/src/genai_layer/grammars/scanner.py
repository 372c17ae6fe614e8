"""Characters, escapes, character classes and quantifiers that regular expressions and EBNF share.

Source: xgrammar 0.1.31, docs/reference/genai.md#structured-output.
"""

from __future__ import annotations

from typing import NoReturn

from genai_layer.errors import ConfigError
from genai_layer.grammars.expressions import CharacterClass, Ranges

MAX_NESTING = 100
"""Maximum depth of parentheses."""

_LAST = 0x10FFFF
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0))

_CONTROLS = dict(zip("nrtbfav0e", map(ord, "\n\r\t\b\f\a\v\0\x1b"), strict=True))
_PLAIN = frozenset("\"'\\/?")
SYNTAX = frozenset("^$.*+()[]{}|-")
"""Characters that an escape makes plain in a character class and in a regular expression."""


def complement(ranges: Ranges) -> Ranges:
    """Return all other code points; the ranges are sorted and separate."""
    found: list[tuple[int, int]] = []
    begin = 0
    for first, last in ranges:
        if first > begin:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= _LAST:
        found.append((begin, _LAST))
    return tuple(found)


SHORTHANDS: dict[str, Ranges] = {
    **{"d": _DIGITS, "w": _WORD, "s": _SPACE},
    **{"D": complement(_DIGITS), "W": complement(_WORD), "S": complement(_SPACE)},
}
"""Character classes of a regular expression's backslash escapes."""

ANY = CharacterClass(((0, _LAST),))
"""Any character, newlines included."""


class Scanner:
    """Position in a source text.

    Args:
        text: the source.
        noun: the kind of source, for messages.
    """

    def __init__(self, text: str, noun: str) -> None:
        self._text = text
        self._noun = noun
        self.position = 0

    def peek(self, count: int = 1) -> str:
        """Return the next characters; fewer, or none, at the end."""
        return self._text[self.position : self.position + count]

    def take(self, count: int = 1) -> str:
        """Return the next characters, and move behind them."""
        taken = self.peek(count)
        self.position += count
        return taken

    def accept(self, text: str) -> bool:
        """Move behind a text if it follows, and return whether it does."""
        if not self._text.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def expect(self, text: str) -> None:
        """Move behind a text.

        Raises:
            ConfigError: another text follows.
        """
        if not self.accept(text):
            self.fail(f"{text} is expected")

    def fail(self, problem: str) -> NoReturn:
        """Raise a ConfigError that names line and column."""
        before = self._text[: self.position]
        line = before.count("\n") + 1
        column = self.position - before.rfind("\n")
        raise ConfigError(f"{self._noun}, line {line}, column {column}: {problem}")

    def digits(self, alphabet: str = "0123456789") -> str:
        """Take the digits that follow; there may be none."""
        begin = self.position
        while (digit := self.peek()) and digit in alphabet:
            self.position += 1
        return self._text[begin : self.position]

    def escape(self, plain: frozenset[str] = frozenset()) -> int:
        r"""Return the code point of an escape; the backslash is taken.

        Args:
            plain: characters that stand for themselves, in addition to ``"'\/?``.

        Raises:
            ConfigError: the escape is unknown.
        """
        letter = self.take()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter and letter in _PLAIN | plain:
            return ord(letter)
        if letter == "x":
            return self._code(self.digits("0123456789abcdefABCDEF"))
        if letter in ("u", "U"):
            return self._code(self.take(4 if letter == "u" else 8))
        self.position -= len(letter)
        self.fail(f"the escape \\{letter} is not supported")

    def quantifier(self) -> tuple[int, int | None] | None:
        """Take a quantifier, and return its limits; None if there is no quantifier.

        Raises:
            ConfigError: the limits are not numbers, or not in order.
        """
        if self.peek() in _QUANTIFIERS:
            return _QUANTIFIERS[self.take()]
        if not self.accept("{"):
            return None
        least = self._count()
        most: int | None = least
        if self.accept(","):
            most = None if self.peek() == "}" else self._count()
        self.expect("}")
        if most is not None and most < least:
            self.fail(f"a repetition from {least} to {most} is impossible; exchange the limits")
        return least, most

    def character_class(self, shorthands: bool) -> CharacterClass:
        r"""Return a character class; its opening bracket is taken.

        Args:
            shorthands: whether ``\d``, ``\w``, ``\s`` and their complements may occur.

        Raises:
            ConfigError: the class is not closed, or a range or an escape is not valid.
        """
        negated = self.accept("^")
        ranges: list[tuple[int, int]] = []
        while not self.accept("]"):
            if shorthands and self.peek() == "\\" and self.peek(2)[1:] in SHORTHANDS:
                ranges.extend(SHORTHANDS[self.take(2)[1]])
                continue
            first = last = self._member()
            if self.peek() == "-" and self.peek(2)[1:] not in ("]", ""):
                self.take()
                last = self._member()
            if last < first:
                self.fail("the range's ends are in the wrong order; exchange them")
            ranges.append((first, last))
        if not ranges and not negated:
            self.fail("the character class is empty; write \\[] for the characters")
        return CharacterClass(tuple(ranges), negated)

    def _count(self) -> int:
        digits = self.digits()
        if not 1 <= len(digits) <= 7:
            self.fail("a repetition needs numbers below 10000000")
        return int(digits)

    def _member(self) -> int:
        character = self.take()
        if character in ("", "\n", "\r"):
            self.fail("the character class is not closed; add ]")
        return self.escape(SYNTAX) if character == "\\" else ord(character)

    def _code(self, digits: str) -> int:
        try:
            code = int(digits, 16)
            chr(code).encode()
        except (ValueError, OverflowError):
            self.fail(f"{digits!r} is not the code of a character")
        return code
