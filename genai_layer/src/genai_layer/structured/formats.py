"""Formats that structured output is composed of: ``StructuredOutputConfig.Regex`` and others.

``a + b`` is a Concat, ``a | b`` a Union. A plain text in their place is the JSON of a format.

Source: openvino_genai.StructuredOutputConfig, docs/reference/genai.md#structured-output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from genai_layer.checked import Checked, read_as
from genai_layer.errors import ConfigError

Format = dict[str, Any]
"""JSON object of a format, with its ``type``."""


class StructuralFormat(Checked):
    """Base class of the formats: the operators."""

    def __add__(self, other: StructuralFormat | str) -> Concat:
        return Concat(_joined(self, Concat) + _joined(other, Concat))

    def __or__(self, other: StructuralFormat | str) -> Union:
        return Union(_joined(self, Union) + _joined(other, Union))

    def to_format(self) -> Format:
        """Return the JSON form.

        Raises:
            ConfigError: a field has a wrong type, or a text is not JSON.
        """
        raise NotImplementedError


AnyFormat = StructuralFormat | str
"""A format, or its JSON."""


def to_format(value: Any) -> Format:
    """Return the JSON form of a format, which may be text already.

    Raises:
        ConfigError: the value is no format, or its text is not a JSON object.
    """
    if isinstance(value, StructuralFormat):
        return value.to_format()
    if not isinstance(value, str):
        raise ConfigError(
            f"{value!r} is no format of structured output; pass e.g. "
            "StructuredOutputConfig.ConstString, or the JSON of a format"
        )
    found = _parsed(value, f"structured output, {value[:50]!r}")
    if not isinstance(found, dict):
        raise ConfigError(
            f"structured output: {value[:50]!r} is not the JSON of a format; use ConstString for a "
            "fixed text"
        )
    return found  # pyright: ignore[reportUnknownVariableType] (JSON)


@dataclass
class _Text(StructuralFormat):
    """Format that is defined by one text, which is given by position."""

    value: str
    _type: ClassVar[str]
    _field: ClassVar[str]

    def __init__(self, value: str, /) -> None:
        self.value = value

    def to_format(self) -> Format:
        """Return the JSON form."""
        return {"type": self._type, self._field: self.value}

    def __repr__(self) -> str:
        return f'{type(self).__name__}("{self.value}")'


class Regex(_Text):
    """Text that a regular expression matches completely."""

    _type, _field = "regex", "pattern"


class EBNF(_Text):
    """Text of an EBNF grammar, whose rule ``root`` is the whole text."""

    _type, _field = "grammar", "grammar"


class ConstString(_Text):
    """Exactly one text."""

    _type, _field = "const_string", "value"


class JSONSchema(_Text):
    """JSON value of a schema, which is given as text."""

    def to_format(self) -> Format:
        """Return the JSON form."""
        return {"type": "json_schema", "json_schema": _parsed(self.value, "JSONSchema")}


@dataclass
class AnyText(StructuralFormat):
    """Any text, up to the end of the enclosing tag or of the answer."""

    def to_format(self) -> Format:
        """Return the JSON form."""
        return {"type": "any_text"}


@dataclass
class QwenXMLParametersFormat(StructuralFormat):
    """Parameters of a function call in XML, from a JSON schema."""

    json_schema: str

    def __init__(self, json_schema: str, /) -> None:
        self.json_schema = json_schema

    def to_format(self) -> Format:
        """Return the JSON form."""
        schema = _parsed(self.json_schema, "QwenXMLParametersFormat")
        return {"type": "qwen_xml_parameter", "json_schema": schema}

    def __repr__(self) -> str:
        return f"QwenXMLParametersFormat(json_schema={self.json_schema})"


@dataclass
class _Elements(StructuralFormat):
    """Format of several elements, given as arguments or as one iterable.

    Raises:
        ArgumentError: an element is no format.
        ValueError: fewer than two elements are given, as in openvino_genai.
    """

    elements: list[AnyFormat]
    _type: ClassVar[str]

    @overload
    def __init__(self, elements: Iterable[AnyFormat]) -> None: ...
    @overload
    def __init__(self, *several: AnyFormat) -> None: ...

    def __init__(self, *several: Any, elements: Any = ...) -> None:
        if elements is not ... and several:
            raise TypeError(f"{type(self).__name__}: elements are given twice; pass them once")
        if elements is ...:
            one_list = len(several) == 1 and not isinstance(several[0], AnyFormat)
            elements = several[0] if one_list else several
        given: list[AnyFormat] = read_as(
            f"{type(self).__name__}: elements", elements, list[AnyFormat]
        )
        if len(given) < 2:
            raise ValueError(f"StructuredOutputConfig.{type(self).__name__}: pass two elements")
        self.elements = given

    def to_format(self) -> Format:
        """Return the JSON form."""
        return {"type": self._type, "elements": [to_format(each) for each in self.elements]}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self.elements))})"


class Concat(_Elements):
    """Elements one after another; only the last one may be free text."""

    _type = "sequence"


class Union(_Elements):
    """One of several elements."""

    _type = "or"


@dataclass
class Tag(StructuralFormat):
    """Content between a begin and an end."""

    begin: str
    content: AnyFormat
    end: str

    def to_format(self) -> Format:
        """Return the JSON form."""
        content = to_format(self.content)
        return {"type": "tag", "begin": self.begin, "content": content, "end": self.end}

    def __repr__(self) -> str:
        return f'Tag(begin="{self.begin}", content={self.content}, end="{self.end}")'


@dataclass
class TriggeredTags(StructuralFormat):
    """Free text in which each trigger begins one of the tags."""

    triggers: Sequence[str]
    tags: Sequence[Tag]
    at_least_one: bool = False
    """Begin with a tag, without free text before it."""
    stop_after_first: bool = False
    """End after the first tag."""

    def to_format(self) -> Format:
        """Return the JSON form."""
        return {
            "type": "triggered_tags",
            "triggers": self.triggers,
            "tags": [to_format(tag) for tag in self.tags],
            "at_least_one": self.at_least_one,
            "stop_after_first": self.stop_after_first,
        }

    def __repr__(self) -> str:
        triggers = ", ".join(f'"{trigger}"' for trigger in self.triggers)
        return (
            f"TriggeredTags(triggers=[{triggers}], tags={[*self.tags]}, "
            f"at_least_one={self.at_least_one}, stop_after_first={self.stop_after_first})"
        )


@dataclass
class TagsWithSeparator(StructuralFormat):
    """Tags with a separator between them, and no other text."""

    tags: Sequence[Tag]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False

    def to_format(self) -> Format:
        """Return the JSON form."""
        return {
            "type": "tags_with_separator",
            "tags": [to_format(tag) for tag in self.tags],
            "separator": self.separator,
            "at_least_one": self.at_least_one,
            "stop_after_first": self.stop_after_first,
        }

    def __repr__(self) -> str:
        one, stop = (str(flag).lower() for flag in (self.at_least_one, self.stop_after_first))
        return (
            f'TagsWithSeparator(separator="{self.separator}", tags={[*self.tags]}, '
            f"at_least_one={one}, stop_after_first={stop})"
        )


def _parsed(source: str, noun: str) -> Any:
    """Return a JSON document.

    Raises:
        ConfigError: the text is not JSON.
    """
    try:
        return json.loads(source)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{noun}: not JSON: {error}") from None


def _joined(value: Any, kind: type[_Elements]) -> list[Any]:
    """Return the elements of a value of the kind, else the value alone."""
    return [*value.elements] if isinstance(value, kind) else [value]
