"""Structured output: text, JSON, or JSON of a schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from genai_layer.serve.openai.schemas.base import Body, JsonObject

_Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class TextFormat(Body):
    """Any text."""

    type: Literal["text"]


class JsonFormat(Body):
    """A JSON object."""

    type: Literal["json_object"]


class SchemaFields(Body):
    """JSON schema with a name."""

    name: _Name
    """Name of the format; without effect."""
    description: str | None = None
    """Without effect."""
    json_schema: JsonObject | None = Field(default=None, alias="schema")
    strict: bool | None = None
    """The text follows the schema in any case."""


class SchemaFormat(Body):
    """JSON of a schema, in a chat."""

    type: Literal["json_schema"]
    json_schema: SchemaFields


class FlatSchemaFormat(SchemaFields):
    """JSON of a schema, in a response."""

    type: Literal["json_schema"]


ChatFormat = Annotated[TextFormat | JsonFormat | SchemaFormat, Field(discriminator="type")]
FlatFormat = Annotated[TextFormat | JsonFormat | FlatSchemaFormat, Field(discriminator="type")]
