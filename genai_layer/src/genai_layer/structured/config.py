"""Configuration of structured output: exactly one kind of grammar.

Source: openvino_genai.StructuredOutputConfig, docs/reference/genai.md#structured-output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import Field

from genai_layer.checked import Checked
from genai_layer.errors import ConfigError
from genai_layer.parameters import Parameters
from genai_layer.structured import formats
from genai_layer.structured.formats import AnyFormat, Format, to_format

_KINDS = ("json_schema", "regex", "grammar", "structural_tags_config", "compound_grammar")
_BACKENDS = (None, "xgrammar", "llguidance")


@dataclass(kw_only=True, slots=True)
class StructuralTagItem(Checked):
    """Tag of a StructuralTagsConfig: JSON of a schema between begin and end."""

    begin: str = ""
    schema: str = ""
    end: str = ""


@dataclass(kw_only=True, slots=True)
class StructuralTagsConfig(Checked):
    """Free text with tags of JSON; deprecated in openvino_genai, use TriggeredTags."""

    structural_tags: list[StructuralTagItem] = field(default_factory=list[StructuralTagItem])
    triggers: list[str] = field(default_factory=list[str])

    def to_format(self) -> Format:
        """Return the JSON form.

        Raises:
            ConfigError: a schema is not JSON.
        """
        tags: list[formats.Tag] = []
        for item in self.structural_tags:
            tags.append(formats.Tag(item.begin, formats.JSONSchema(item.schema), item.end))
        return formats.TriggeredTags(self.triggers, tags).to_format()


class StructuredOutputConfig(Parameters):
    """Grammar that a generated text follows.

    Args:
        values: one of the fields; ``backend`` may be xgrammar or llguidance, without effect; and
            ``lenient``.

    Raises:
        ConfigError: a name is unknown, a value has a wrong type, or arguments are given and do not
            set exactly one kind of grammar.
    """

    _noun: ClassVar[str] = "field of StructuredOutputConfig"

    json_schema: str | None = None
    """JSON schema of the text."""
    regex: str | None = None
    """Regular expression that matches the whole text."""
    grammar: str | None = None
    """EBNF grammar, whose rule ``root`` is the whole text."""
    structural_tags_config: StructuralTagsConfig | AnyFormat | None = None
    """Composed formats, or the JSON text of a structural tag."""
    compound_grammar: AnyFormat | None = None
    """The same, under its deprecated name."""
    backend: str | None = Field(default=None, repr=False)
    """Name of a grammar compiler; there is one here."""
    lenient: bool = Field(default=False, repr=False)
    """Ignore keywords and formats of JSON schemas that a grammar cannot follow. Ours."""

    Regex: ClassVar = formats.Regex
    JSONSchema: ClassVar = formats.JSONSchema
    EBNF: ClassVar = formats.EBNF
    ConstString: ClassVar = formats.ConstString
    AnyText: ClassVar = formats.AnyText
    QwenXMLParametersFormat: ClassVar = formats.QwenXMLParametersFormat
    Concat: ClassVar = formats.Concat
    Union: ClassVar = formats.Union
    Tag: ClassVar = formats.Tag
    TriggeredTags: ClassVar = formats.TriggeredTags
    TagsWithSeparator: ClassVar = formats.TagsWithSeparator

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if values:
            self.validate()

    def validate(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (openvino_genai's name; pydantic's is deprecated)
        """Check that there is one grammar.

        Raises:
            ConfigError: no grammar or several ones are set, or the backend is unknown.
        """
        given = [name for name in _KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ConfigError(
                f"structured_output_config has {', '.join(given) or 'no grammar'}; set one of "
                f"{', '.join(_KINDS)}"
            )
        if self.backend not in _BACKENDS:
            raise ConfigError(f"backend = {self.backend!r}: must be llguidance or xgrammar")

    def to_format(self) -> Format:
        """Return the JSON form of the grammar.

        Raises:
            ConfigError: there is not exactly one grammar, or it is not JSON where it must be.
        """
        self.validate()
        if self.json_schema is not None:
            return formats.JSONSchema(self.json_schema).to_format()
        if self.regex is not None:
            return formats.Regex(self.regex).to_format()
        if self.grammar is not None:
            return formats.EBNF(self.grammar).to_format()
        tags = self.structural_tags_config or self.compound_grammar
        if isinstance(tags, StructuralTagsConfig):
            return tags.to_format()
        return _inner(to_format(tags)) if isinstance(tags, str) else to_format(tags)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in _KINDS)
        return f"StructuredOutputConfig({values})"

    __str__ = __repr__


def _inner(tag: Format) -> Format:
    """Return the format of a complete structural tag.

    Raises:
        ConfigError: the text is no structural tag.
    """
    if tag.keys() != {"type", "format"} or tag["type"] != "structural_tag":
        raise ConfigError(
            'structural_tags_config: a text must be {"type": "structural_tag", "format": …}'
        )
    return tag["format"]
