"""instructor over OpenAI's client, in its ways to ask for an object."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Annotated, Any

import instructor
import openai
from pydantic import BaseModel, Field

CLIENT = DISTRIBUTION = "instructor"
QUESTION: Any = [{"role": "user", "content": "It is 7 degrees in Oslo."}]


class Sky(Enum):
    """Look of the sky."""

    CLEAR = "clear"
    GREY = "grey"


class Weather(BaseModel):
    """Weather in a city."""

    city: str
    degrees: Annotated[int, Field(ge=-60, le=60)]
    sky: Sky | None = None
    names: list[str] = []


def _ask(base_url: str, mode: instructor.Mode, kind: Any = Weather) -> None:
    client = instructor.from_openai(
        openai.OpenAI(base_url=base_url, api_key="none", max_retries=0), mode=mode
    )
    client.create(model="toy", messages=QUESTION, response_model=kind, max_retries=0)


def _partial(base_url: str) -> None:
    client = instructor.from_openai(openai.OpenAI(base_url=base_url, api_key="none"))
    list(client.create_partial(model="toy", messages=QUESTION, response_model=Weather))


MODES = {
    "tools": instructor.Mode.TOOLS,
    "strict": instructor.Mode.TOOLS_STRICT,
    "json": instructor.Mode.JSON,
    "schema": instructor.Mode.JSON_SCHEMA,
    "markdown": instructor.Mode.MD_JSON,
    "responses": instructor.Mode.RESPONSES_TOOLS,
}
CASES: dict[str, Callable[[str], None]] = {
    "partial": _partial,
    **{name: partial(_ask, mode=mode) for name, mode in MODES.items()},
}
