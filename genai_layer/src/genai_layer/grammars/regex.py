r"""Regular expressions, read as xgrammar reads them: the whole text must match.

``.`` is any character, newlines included; ``\d``, ``\w`` and ``\s`` are ASCII's, and U+00A0 is a
space. Source: docs/reference/genai.md#structured-output.
"""

from __future__ import annotations

from genai_layer.grammars.expressions import (
    CharacterClass,
    Choice,
    Expression,
    Literal,
    Sequence,
    repeated,
)
from genai_layer.grammars.scanner import ANY, MAX_NESTING, SHORTHANDS, SYNTAX, Scanner


def parse_regex(pattern: str) -> Expression:
    """Return the expression of a pattern.

    Raises:
        ConfigError: the pattern is broken, or has a part that is not regular or not supported:
            look-around, back references, word boundaries, flags, anchors inside of it.
    """
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._scanner = Scanner(pattern, "regular expression")
        self._depth = 0

    def parse(self) -> Expression:
        found = self._choice()
        if self._scanner.peek():
            self._scanner.fail("a group is closed that is not open; write \\) for the character")
        return found

    def _choice(self) -> Expression:
        options = [self._sequence()]
        while self._scanner.accept("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Expression:
        if self._depth == 0:
            self._scanner.accept("^")
        parts: list[Expression] = []
        while self._scanner.peek() not in ("", "|", ")") and not self._ends():
            parts.append(self._quantified(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _ends(self) -> bool:
        """Take a ``$`` that ends the pattern or one of its outermost options."""
        ends = self._depth == 0 and self._scanner.peek(2) in ("$", "$|")
        return ends and self._scanner.accept("$")

    def _quantified(self, atom: Expression) -> Expression:
        scanner = self._scanner
        limits = scanner.quantifier()
        if limits is None:
            return atom
        scanner.accept("?")  # Lazy repetitions match the same texts.
        if scanner.peek() in ("*", "+", "?", "{"):
            scanner.fail("two repetitions follow each other; group the first one")
        return repeated(atom, *limits)

    def _atom(self) -> Expression:
        scanner = self._scanner
        character = scanner.take()
        if character == "(":
            return self._group()
        if character == "[":
            return scanner.character_class(shorthands=True)
        if character == ".":
            return ANY
        if character == "\\":
            return self._escape()
        if character in "^$*+?{":
            scanner.position -= 1
            scanner.fail(
                f"{character} is not supported here; write \\{character} for the character"
            )
        return Literal(character)

    def _group(self) -> Expression:
        scanner = self._scanner
        if scanner.accept("?") and not scanner.accept(":"):
            if not scanner.accept("<") or scanner.peek() in ("=", "!"):
                scanner.fail("look-around and flags are not supported; remove them")
            while scanner.peek().isalnum() or scanner.peek() == "_":
                scanner.take()
            scanner.expect(">")
        self._depth += 1
        if self._depth > MAX_NESTING:
            scanner.fail(f"groups are nested more than {MAX_NESTING} deep")
        found = self._choice()
        scanner.expect(")")
        self._depth -= 1
        return found

    def _escape(self) -> Expression:
        scanner = self._scanner
        if scanner.peek() in SHORTHANDS:
            return CharacterClass(SHORTHANDS[scanner.take()])
        if scanner.peek() == "b":
            scanner.fail("word boundaries are not supported; remove them")
        return Literal(chr(scanner.escape(SYNTAX)))
