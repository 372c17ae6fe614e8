"""Writer of a grammar in llguidance's Lark dialect.

A grammar without recursion, JSON and tags is written as terminals, which are regular expressions.
Any other grammar is written in rules over single characters: llguidance's lexer takes the longest
terminal that matches, and would miss texts in which a shorter one is right.

Source: llguidance's page on its Lark syntax.
"""

from __future__ import annotations

import json

from genai_layer.grammars.expressions import (
    CharacterClass,
    Choice,
    Expression,
    FreeText,
    Json,
    Literal,
    Reference,
    Repeat,
    Rules,
    Sequence,
    TextUntil,
    children,
)

_EMPTY = '""'
_OPTIONS = '%llguidance {"no_forcing": true}'
"""Allow each tokenization of a text that the grammar determines, as openvino_genai does."""


def write_lark(rules: Rules, root: str) -> str:
    """Return the grammar whose texts are those of the rule ``root``."""
    return _Writer(rules, root).write()


class _Writer:
    def __init__(self, rules: Rules, root: str) -> None:
        self._rules = rules
        self._root = root
        self._regular = _is_regular(rules, root)
        self._names: dict[str, str] = {}
        self._added: list[str] = []

    def write(self) -> str:
        lines = [_OPTIONS, f"start: {self._name(self._root)}"]
        written = 0
        while written < len(self._names):  # Writing a rule names those that it refers to.
            rule = [*self._names][written]
            lines.append(f"{self._names[rule]}: {self._text(self._rules[rule])}")
            written += 1
        return "\n".join([*lines, *self._added, ""])

    def _name(self, rule: str) -> str:
        letter = "T" if self._regular else "r"
        return self._names.setdefault(rule, f"{letter}{len(self._names)}")

    def _text(self, expression: Expression) -> str:
        match expression:
            case Literal(text):
                parts = [text] if self._regular else text
                return " ".join(map(_quoted, parts)) or _EMPTY
            case CharacterClass(ranges, negated):
                members = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)
                return f"/[{'^' if negated else ''}{members}]/" if members else "/(?s:.)/"
            case Sequence(parts):
                return " ".join(map(self._atom, parts)) or _EMPTY
            case Choice(options):
                return " | ".join(map(self._atom, options))
            case Repeat(body, least, most):
                return f"{self._atom(body)}{{{least},{'' if most is None else most}}}"
            case Reference(rule):
                return self._name(rule)
            case FreeText():
                return "/(?s:.*)/"
            case TextUntil(ends):
                options = " | ".join(map(_quoted, ends))
                return self._add("[lazy]", f"/(?s:.*)/ ({options})")
            case Json(schema):
                return self._add("", f"%json {json.dumps(schema)}")

    def _atom(self, expression: Expression) -> str:
        return f"({self._text(expression)})"

    def _add(self, options: str, body: str) -> str:
        """Add a rule of its own, and return its name."""
        name = f"a{len(self._added)}"
        self._added.append(f"{name}{options}: {body}")
        return name


def _quoted(text: str) -> str:
    # llguidance rejects a plain U+007F, which JSON does not escape.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_regular(rules: Rules, root: str) -> bool:
    """Return whether a rule, with all that it refers to, has no recursion, JSON and tags."""
    found: dict[str, bool] = {}

    def regular(expression: Expression) -> bool:
        if isinstance(expression, Json | TextUntil):
            return False
        if isinstance(expression, Reference):
            return rule(expression.rule)
        return all(map(regular, children(expression)))

    def rule(name: str) -> bool:
        if name not in found:
            found[name] = False  # A rule that is met again while it is read is recursive.
            found[name] = regular(rules[name])
        return found[name]

    return rule(root)
