"""Base class of parameters: names are checked, values are read as ``kinds`` describes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from genai_layer.errors import ArgumentError, ConfigError
from genai_layer.kinds import Mismatch, brief, describe, read


def plain(value: object) -> object:
    """Return numpy's scalars as Python's, and other values unchanged."""
    return cast(Any, value).item() if isinstance(value, np.generic) else value


class Parameters(BaseModel):
    """Named values with types; they are compared, copied and printed as values.

    Raises:
        ConfigError: a name is unknown, or a value has a wrong type; also on assignment.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, validate_assignment=True, arbitrary_types_allowed=True
    )
    _noun: ClassVar[str] = "parameter"
    """Noun for the fields, in messages."""

    def __init__(self, **values: Any) -> None:
        self._check_names(values)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _explained(error) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._check_names([name])
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise _explained(error) from None

    @field_validator("*", mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        hint = cls.model_fields[str(info.field_name)].annotation
        try:
            return read(value, hint)
        except Mismatch:
            raise PydanticCustomError("kind", "pass {kind}", {"kind": describe(hint)}) from None

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        for name in names:
            if name not in cls.model_fields:
                near = difflib.get_close_matches(name, [*cls.model_fields], 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ConfigError(f"unknown {cls._noun} {name!r}{hint}")


def _explained(error: ValidationError) -> ArgumentError:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    return ArgumentError(f"{name} = {brief(first['input'])}: {first['msg']}")
