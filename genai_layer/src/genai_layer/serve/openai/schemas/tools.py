"""Functions that a model may call, and the choice among them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Discriminator, Field, Tag

from genai_layer.serve.openai.schemas.base import Body, JsonObject, Reply

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""Name of a function."""

Choice = Literal["none", "auto", "required"]
"""No call; a call or text, as the model decides; or a call."""

Chosen = Choice | Name


class Function(Body):
    """Function of a chat."""

    name: Name
    description: str | None = None
    parameters: JsonObject | None = None
    """JSON schema of the arguments, an object; the default has no arguments."""
    strict: bool | None = None
    """The arguments must follow the schema."""


class Tool(Body):
    """Function as a tool of a chat."""

    type: Literal["function"]
    function: Function


class OtherTool(BaseModel):
    """Tool of another type, e.g. one that OpenAI's servers run; it is left out."""

    type: Annotated[str, Field(max_length=64)]


_FUNCTION, _OTHER = "a function", "another tool"
"""Tags; no field of a tool has such a name, as errors name tags and fields alike."""


def _kind_of(tool: object) -> str:
    """Return the tag of a tool; one without a type counts as a function."""
    given = cast(dict[str, Any], tool) if isinstance(tool, dict) else {}
    kind = given.get("type", "function")
    return _OTHER if isinstance(kind, str) and kind != "function" else _FUNCTION


class NamedFunction(Body):
    """Name of a function, as a part of a choice."""

    name: Name


class NamedTool(Body):
    """Choice of one function."""

    type: Literal["function"]
    function: NamedFunction


class FlatTool(Function):
    """Function as a tool of a response."""

    type: Literal["function"]


_Other = Annotated[OtherTool, Tag(_OTHER)]
AnyTool = Annotated[Annotated[Tool, Tag(_FUNCTION)] | _Other, Discriminator(_kind_of)]
"""Tool of a chat."""
AnyFlatTool = Annotated[Annotated[FlatTool, Tag(_FUNCTION)] | _Other, Discriminator(_kind_of)]
"""Tool of a response."""


class FlatNamedTool(NamedFunction):
    """Choice of one function of a response."""

    type: Literal["function"]


class CalledFunction(Reply):
    """Name and arguments of a call."""

    name: str
    arguments: str
    """JSON text of an object."""


class ToolCall(Reply):
    """Call of a function, in a reply."""

    id: str
    type: Literal["function"]
    function: CalledFunction
