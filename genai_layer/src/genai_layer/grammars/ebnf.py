"""EBNF in xgrammar's dialect: rules ``name ::= expression``, of which ``root`` is the first.

Source: docs/reference/genai.md#structured-output. Look-ahead and macros are rejected.
"""

from __future__ import annotations

from genai_layer.errors import ConfigError
from genai_layer.grammars.expressions import (
    Choice,
    Expression,
    Literal,
    Reference,
    Rules,
    Sequence,
    children,
    repeated,
)
from genai_layer.grammars.scanner import MAX_NESTING, Scanner

_MACROS = ("TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "Regex", "Substring")


def parse_ebnf(source: str) -> Rules:
    """Return the rules of a grammar.

    Raises:
        ConfigError: the grammar is broken, or has a part that is not supported.
    """
    rules = _Parser(source).parse()
    if "root" not in rules:
        raise ConfigError("grammar: has no rule root, which is the whole text; add root ::= …")
    for name, expression in rules.items():
        missing = _missing(expression, rules)
        if missing:
            raise ConfigError(
                f"grammar: the rule {name} refers to {missing}, which is no rule; add it"
            )
    return rules


def _missing(expression: Expression, rules: Rules) -> str:
    if isinstance(expression, Reference):
        return "" if expression.rule in rules else expression.rule
    return next(filter(None, (_missing(part, rules) for part in children(expression))), "")


class _Parser:
    def __init__(self, source: str) -> None:
        self._scanner = Scanner(source, "grammar")
        self._depth = 0

    def parse(self) -> Rules:
        rules: Rules = {}
        self._space()
        while self._scanner.peek():
            name = self._name()
            if not self._assign():
                self._scanner.fail("::= is expected")
            if name in rules:
                self._scanner.fail(f"the rule {name} is defined twice; rename one")
            rules[name] = self._choice()
        return rules

    def _space(self) -> None:
        """Skip spaces, newlines and comments."""
        while (character := self._scanner.peek()) and character in " \t\r\n#":
            self._scanner.take()
            while character == "#" and self._scanner.peek() not in ("", "\n", "\r"):
                self._scanner.take()

    def _name(self) -> str:
        name = ""
        while (letter := self._scanner.peek()) and _in_name(letter, first=not name):
            name += self._scanner.take()
        if not name:
            self._scanner.fail("the name of a rule is expected")
        self._space()
        return name

    def _assign(self) -> bool:
        found = self._scanner.accept("::=")
        if found:
            self._space()
        return found

    def _begins_rule(self) -> bool:
        """Return whether the name of the next rule follows."""
        begin = self._scanner.position
        if not _in_name(self._scanner.peek(), first=True):
            return False
        self._name()
        found = self._assign()
        self._scanner.position = begin
        return found

    def _choice(self) -> Expression:
        options = [self._sequence()]
        while self._scanner.accept("|"):
            self._space()
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Expression:
        parts = [self._quantified()]
        while self._scanner.peek() not in ("", "|", ")") and not self._begins_rule():
            parts.append(self._quantified())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantified(self) -> Expression:
        element = self._element()
        self._space()
        limits = self._scanner.quantifier()
        self._space()
        return element if limits is None else repeated(element, *limits)

    def _element(self) -> Expression:
        scanner = self._scanner
        if scanner.accept("("):
            return self._group()
        if scanner.accept("["):
            return scanner.character_class(shorthands=False)
        if scanner.accept('"'):
            return self._literal()
        if _in_name(scanner.peek(), first=True):
            name = self._name()
            if name in _MACROS and scanner.peek() == "(":
                scanner.fail(f"the macro {name} is not supported; write rules instead")
            return Reference(name)
        scanner.fail("a text, a character class, a group or the name of a rule is expected")

    def _group(self) -> Expression:
        scanner = self._scanner
        if scanner.peek() == "=":
            scanner.fail("look-ahead is not supported; remove it")
        self._space()
        if scanner.accept(")"):
            return Literal("")
        self._depth += 1
        if self._depth > MAX_NESTING:
            scanner.fail(f"groups are nested more than {MAX_NESTING} deep")
        found = self._choice()
        scanner.expect(")")
        self._depth -= 1
        return found

    def _literal(self) -> Expression:
        scanner, text = self._scanner, ""
        while not scanner.accept('"'):
            character = scanner.take()
            if character in ("", "\n", "\r"):
                scanner.fail('the text is not closed; add "')
            text += chr(scanner.escape()) if character == "\\" else character
        return Literal(text)


def _in_name(letter: str, first: bool) -> bool:
    if not letter or not letter.isascii():
        return False
    return letter.isalpha() or letter in "_-." or (letter.isdigit() and not first)
