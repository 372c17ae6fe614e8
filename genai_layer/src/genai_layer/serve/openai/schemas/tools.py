"""Functions that a model may call, and the choice among them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

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
    """Tool of a chat; only functions are supported."""

    type: Literal["function"]
    function: Function


class NamedFunction(Body):
    """Name of a function, as a part of a choice."""

    name: Name


class NamedTool(Body):
    """Choice of one function."""

    type: Literal["function"]
    function: NamedFunction


class FlatTool(Function):
    """Tool of a response; only functions are supported."""

    type: Literal["function"]


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
