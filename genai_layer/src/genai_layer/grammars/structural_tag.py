"""Structural tags: the JSON form of all kinds of structured output, translated to expressions.

Source: xgrammar 0.1.31, docs/reference/genai.md#structured-output. A format is a JSON object with a
``type``; unknown types and fields are rejected.
"""

from __future__ import annotations

from typing import Any, cast

from genai_layer.errors import ConfigError
from genai_layer.grammars.ebnf import parse_ebnf
from genai_layer.grammars.expressions import (
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
    either,
    renamed,
)
from genai_layer.grammars.json_schema import checked_schema, guided_schema, parameters
from genai_layer.grammars.regex import parse_regex
from genai_layer.structured.formats import Format

ROOT = "root"
"""Rule of the whole text."""

_FIELDS: dict[str, dict[str, Any]] = {
    "const_string": {"value": str},
    "json_schema": {"json_schema": object},
    "qwen_xml_parameter": {"json_schema": object},
    "grammar": {"grammar": str},
    "regex": {"pattern": str},
    "any_text": {},
    "sequence": {"elements": list},
    "or": {"elements": list},
    "tag": {"begin": str, "content": object, "end": (str, list)},
    "triggered_tags": {"triggers": list, "tags": list},
    "tags_with_separator": {"tags": list, "separator": str},
}
"""Fields of each type, which must not be missing or empty."""

_FLAGS = ("at_least_one", "stop_after_first")
_MAY_BE_EMPTY = ("begin", "end", "separator", "pattern")
_FREE = ("any_text", "triggered_tags")


def translate(tag: Format) -> Rules:
    """Return the rules of a format; ``root`` is the whole text.

    Raises:
        ConfigError: the format is broken or not supported.
    """
    translator = _Translator()
    translator.rules[ROOT] = translator.expression(tag, ())
    return translator.rules


class _Translator:
    """Translation of formats; ``ends`` are the texts of which one must follow, if there are any."""

    def __init__(self) -> None:
        self.rules: Rules = {}

    def expression(self, given: Any, ends: tuple[str, ...]) -> Expression:
        """Return the expression of a format and its end."""
        fields = _checked(given)
        match fields["type"]:
            case "any_text":
                return TextUntil(ends) if ends else FreeText()
            case "triggered_tags":
                return self._triggered(fields, ends)
            case "sequence":
                return self._sequence(fields["elements"], ends)
            case "or":
                return self._choice(fields["elements"], ends)
            case _:
                found = self._limited(fields)
                return Sequence((found, either(ends))) if ends else found

    def _limited(self, fields: Format) -> Expression:
        """Return the expression of a format whose end is known from itself."""
        match fields["type"]:
            case "const_string":
                return Literal(fields["value"])
            case "json_schema":
                return Json(guided_schema(checked_schema(fields["json_schema"])))
            case "qwen_xml_parameter":
                return parameters(fields["json_schema"])
            case "regex":
                return parse_regex(fields["pattern"])
            case "grammar":
                return self._grammar(fields["grammar"])
            case "tag":
                return self._tag(fields)
            case _:
                return self._separated(fields)

    def _grammar(self, source: str) -> Expression:
        """Add the rules of an EBNF grammar, and return a reference to its root."""
        prefix = f"{len(self.rules)} "
        for name, expression in parse_ebnf(source).items():
            self.rules[prefix + name] = renamed(expression, prefix)
        return Reference(f"{prefix}root")

    def _sequence(self, elements: list[Any], ends: tuple[str, ...]) -> Expression:
        *first, last = elements
        for element in first:
            if _is_free(element):
                raise ConfigError(
                    "Concat: only the last element can be free text (AnyText, TriggeredTags); "
                    "put it into a Tag, which has an end"
                )
        parts = [self.expression(element, ()) for element in first]
        return Sequence((*parts, self.expression(last, ends)))

    def _choice(self, elements: list[Any], ends: tuple[str, ...]) -> Expression:
        if any(map(_is_free, elements)):
            raise ConfigError(
                "Union: free text (AnyText, TriggeredTags) cannot be one of several options; put "
                "it into a Tag, which has an end"
            )
        return Choice(tuple(self.expression(element, ends) for element in elements))

    def _tag(self, fields: Format, trigger: str = "") -> Expression:
        """Return the expression of a tag, without the trigger that begins it."""
        ends = _ends(fields)
        if _is_free(fields["content"]) and not (ends and all(ends)):
            raise ConfigError(
                f"Tag: end is empty, and the content after {fields['begin']!r} is free text; set "
                "end"
            )
        begin = Literal(fields["begin"][len(trigger) :])
        return Sequence((begin, self.expression(fields["content"], ends)))

    def _separated(self, fields: Format) -> Expression:
        tags = self._tags(fields["tags"])
        if not fields["stop_after_first"]:
            more = Sequence((Literal(fields["separator"]), tags))
            tags = Sequence((tags, Repeat(more, 0, None)))
        return tags if fields["at_least_one"] else Repeat(tags, 0, 1)

    def _triggered(self, fields: Format, ends: tuple[str, ...]) -> Expression:
        """Return free text with tags; at_least_one begins with a tag and without a text."""
        rest = TextUntil(ends) if ends else FreeText()
        end = either(ends) if ends else Literal("")
        called = self._called(fields)
        first = self._tags(fields["tags"])
        match fields["at_least_one"], fields["stop_after_first"]:
            case True, True:
                return Sequence((first, end))
            case False, True:
                return Choice((Sequence((called, end)), rest))
            case at_least_one, _:
                text = Sequence((Repeat(called, 0, None), rest))
                return Sequence((first, text)) if at_least_one else text

    def _called(self, fields: Format) -> Expression:
        """Return free text through a trigger, and one of the trigger's tags."""
        tags: list[Format] = [_checked(tag, "tag") for tag in fields["tags"]]
        triggers: list[str] = fields["triggers"]
        for begin in (tag["begin"] for tag in tags):
            count = sum(begin.startswith(trigger) for trigger in triggers)
            if count != 1:
                raise ConfigError(
                    f"TriggeredTags: the tag {begin!r} begins with {count} triggers; it must begin "
                    "with one"
                )
        options: list[Expression] = []
        for trigger in triggers:
            known = [tag for tag in tags if tag["begin"].startswith(trigger)]
            if known:
                tag = Choice(tuple(self._tag(tag, trigger) for tag in known))
                options.append(Sequence((TextUntil((trigger,)), tag)))
        return Choice(tuple(options))

    def _tags(self, tags: list[Any]) -> Expression:
        return Choice(tuple(self._tag(_checked(tag, "tag")) for tag in tags))


def _checked(given: Any, needed: str = "") -> Format:
    """Return the fields of a format, with the flags' defaults.

    Raises:
        ConfigError: the type is unknown, or a field is missing, unknown or broken.
    """
    if not isinstance(given, dict):
        raise ConfigError(f"structural tag: a format is an object with a type, not {given!r}")
    fields = cast(Format, given)
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS or (needed and kind != needed):
        known = needed or ", ".join(_FIELDS)
        raise ConfigError(f"structural tag: the type {kind!r} is not one of {known}")
    types = _FIELDS[kind]
    flags = _FLAGS if kind in ("triggered_tags", "tags_with_separator") else ()
    for name in fields.keys() - types.keys() - {"type", *flags}:
        raise ConfigError(f"structural tag: {kind} has no supported field {name!r}; remove it")
    for name, type_ in types.items():
        value = fields.get(name)
        if not isinstance(value, type_) or (value in ("", [], None) and name not in _MAY_BE_EMPTY):
            raise ConfigError(f"structural tag: {kind} needs a value for {name}, not {value!r}")
    texts = [*fields.get("triggers", []), *_ends(fields)]
    if not all(isinstance(text, str) for text in texts) or "" in fields.get("triggers", []):
        raise ConfigError(f"structural tag: {kind} needs texts, not {texts!r}")
    found = dict.fromkeys(flags, False) | fields
    if not all(isinstance(found[name], bool) for name in flags):
        raise ConfigError(f"structural tag: {' and '.join(flags)} must be booleans")
    return found


def _ends(fields: Format) -> tuple[str, ...]:
    """Return the ends of a tag, which may be one text or a list; other formats have none."""
    end = fields.get("end", [])
    return (end,) if isinstance(end, str) else tuple(end)


def _is_free(given: Any) -> bool:
    """Return whether a format ends with free text, which only an end or the answer's end ends."""
    fields = cast(Format, given) if isinstance(given, dict) else {}
    match fields:
        case {"type": "sequence", "elements": [*_, last]}:
            return _is_free(last)
        case {"type": "or", "elements": [*options]}:
            return any(map(_is_free, options))
        case _:
            return fields.get("type") in _FREE
