"""Base of option groups: how values are read and written, the nearest name, texts of fields.

The text below a field says what its option does. pydantic would read such texts while groups are
made (``use_attribute_docstrings``): a fifth of what it takes to load them, at every start.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import os
import types
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    JsonValue,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, core_schema

OURS: dict[str, JsonValue] = {"source": "this project"}
"""``json_schema_extra`` of an option that OpenVINO does not have."""

MANY = 1 << 20
"""No prompt, response or cache has more tokens."""

EXPERTS = "NPUW_MOE_HINT"
"""Key of a compiler's configuration: how experts of mixtures run, unless all run on all tokens."""

DEVICE_ROUTED = "DEVICE_ROUTED"
"""Value of EXPERTS: the program itself reads the weights of the chosen experts alone."""

_FLAGS = {"YES": True, "NO": False, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Only:
    """Of the values that an option has in the original, those that this stack does.

    The others are refused with the reason: an option that has no effect would be believed.
    """

    values: tuple[object, ...]
    because: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check values after their type."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def check(self, value: object) -> object:
        """Give a value back.

        Raises:
            ValueError: it is none of those that are done.
        """
        if value not in self.values:
            raise ValueError(f"not supported here: {written(value)}, because {self.because}")
        return value


_MERE_NAMES = frozenset({"weights_bank"})
"""Text that no file is called by: any is one."""


G = TypeVar("G", bound="OptionGroup")


class OptionGroup(BaseModel):
    """Options that belong together."""

    # Nobody validates by a group alone: what that takes is made for all of them together.
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False, defer_build=True)

    title: ClassVar[str] = ""

    def group(self, group: type[G]) -> G:
        """Return these options as one of their groups, which types its fields.

        Raises:
            TypeError: the group is that of a kind which is not installed.
        """
        if not isinstance(self, group):
            raise TypeError(f"{group.__name__} is no group of these options")
        return self

    @field_validator("*", mode="before")
    @classmethod
    def _read_as_openvino_writes(cls, value: object, info: ValidationInfo) -> object:
        """Take YES for flags, "1,2" or 1 for lists, JSON for maps, paths and numbers for text."""
        kind = kind_of(cls.model_fields[info.field_name or ""].annotation)
        if kind is bool and isinstance(value, str):
            return _FLAGS.get(value.upper(), value)
        if kind is int and isinstance(value, bool):
            raise ValueError("must be an integer")  # Python would take True for 1
        if kind is str and info.field_name not in _MERE_NAMES:
            return _text_of(value)
        if kind is tuple and type(value) is int:
            return (value,)
        if kind is tuple and isinstance(value, str):
            return tuple(filter(None, (part.strip() for part in value.split(","))))
        return _map_of(value) if kind is dict and isinstance(value, str) else value


def _text_of(value: object) -> object:
    """A path or number as text, and text as it is.

    Raises:
        ValueError: it is no text that a file, or anything else, can be called.
    """
    text = str(value) if type(value) is int or isinstance(value, Path) else value
    if not isinstance(text, str):
        return value
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError("must be text that can be encoded") from None
    if b"\0" in encoded:  # the system's own error names no option
        raise ValueError("must be text without null characters")
    try:
        Path(text).expanduser()
    except RuntimeError:  # as of ~nobody
        raise ValueError("begins with ~ and a user who has no folder") from None
    return text


def _map_of(text: str) -> object:
    """A map as command lines give it."""
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        raise ValueError('must be a map of options, such as {"NPU_TILES": 2}') from None


def kind_of(annotation: object) -> object:
    """The type of an option: of ``tuple[int, ...]`` tuple, of ``bool | None`` bool."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        (kind,) = (each for each in get_args(annotation) if each is not type(None))
        return kind_of(kind)
    return origin or annotation


def written(value: object) -> str:
    """A value as a configuration would have it."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, tuple):
        return ",".join(map(str, cast(tuple[object, ...], value)))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else str(value)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of some names, whatever the case, or None if none is similar."""
    by_case = {each.upper(): each for each in known}
    found = difflib.get_close_matches(name.upper(), by_case, 1)
    return by_case[found[0]] if found else None


@cache
def effects(group: type[OptionGroup]) -> dict[str, str]:
    """Give the text of each field of a group, as one line."""
    (parsed,) = ast.parse(dedent(inspect.getsource(group))).body
    found: dict[str, str] = {}
    for field, below in pairwise(parsed.body if isinstance(parsed, ast.ClassDef) else ()):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found
