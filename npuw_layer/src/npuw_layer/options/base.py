"""Base of option groups: parsing and formatting of values, name suggestions, texts of fields.

The text below a field describes its option. pydantic could read these texts while groups are
created (``use_attribute_docstrings``), but that takes a fifth of their load time, at every start.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import os
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
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
"""Upper bound of the tokens of a prompt, response or cache."""

EXPERTS = "NPUW_MOE_HINT"
"""Key of a compiler's configuration: the way experts run, unless all run on all tokens."""

DEVICE_ROUTED = "DEVICE_ROUTED"
"""Value of EXPERTS: the program itself reads only the weights of the chosen experts."""

PER_TOKEN = (1 << 64) - 1
"""Value of DYNAMIC_QUANTIZATION_GROUP_SIZE for one group per token: OpenVINO's UINT64_MAX."""

_FLAGS = {"YES": True, "NO": False, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Only:
    """Restriction of an option's values in OpenVINO to those that this stack supports.

    Other values are rejected with the reason, so that no value is silently ignored.
    """

    values: tuple[object, ...]
    because: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check values after their type."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def check(self, value: object) -> object:
        """Return a supported value.

        Raises:
            ValueError: the value is not supported.
        """
        if value not in self.values:
            raise ValueError(f"not supported here: {written(value)}, because {self.because}")
        return value


def readable(read: Callable[[str], object]) -> AfterValidator:
    """Return a validator of texts that a function can read; it raises ValueError for others."""

    def check(text: str) -> str:
        read(text)
        return text

    return AfterValidator(check)


_MERE_NAMES = frozenset({"weights_bank"})
"""Text fields that never name a file: any text is valid."""


G = TypeVar("G", bound="OptionGroup")


class OptionGroup(BaseModel):
    """Base of groups of related options."""

    # Single groups never validate; validators are built only for the class of all groups.
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False, defer_build=True)

    title: ClassVar[str] = ""

    def group(self, group: type[G]) -> G:
        """Return these options as one of their groups, which types its fields.

        Raises:
            TypeError: the group belongs to a kind that is not installed.
        """
        if not isinstance(self, group):
            raise TypeError(f"{group.__name__} is not a group of these options")
        return self

    @field_validator("*", mode="before")
    @classmethod
    def _read_as_openvino_writes(cls, value: object, info: ValidationInfo) -> object:
        """Convert YES to flags, "1,2" or 1 to lists, JSON to maps, paths and numbers to text."""
        kind = kind_of(cls.model_fields[info.field_name or ""].annotation)
        if kind is bool and isinstance(value, str):
            return _FLAGS.get(value.upper(), value)
        if kind is int and isinstance(value, bool):
            raise ValueError("must be an integer")  # Python would accept True as 1
        if kind is str and info.field_name not in _MERE_NAMES:
            return _text_of(value)
        if kind is tuple and type(value) is int:
            return (value,)
        if kind is tuple and isinstance(value, str):
            return tuple(filter(None, (part.strip() for part in value.split(","))))
        return _map_of(value) if kind is dict and isinstance(value, str) else value


def _text_of(value: object) -> object:
    """Return a path or number as text, and text unchanged.

    Raises:
        ValueError: the text is not valid as a file name.
    """
    text = str(value) if type(value) is int or isinstance(value, Path) else value
    if not isinstance(text, str):
        return value
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError("must be text that UTF-8 can encode") from None
    if b"\0" in encoded:  # the system's error does not name the option
        raise ValueError("must be text without null characters")
    try:
        Path(text).expanduser()
    except RuntimeError:  # for example of ~nobody
        raise ValueError("begins with ~ and an unknown user; write the complete path") from None
    return text


def _map_of(text: str) -> object:
    """Parse a map from a command line."""
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        raise ValueError('must be a map of options, such as {"NPU_TILES": 2}') from None


def kind_of(annotation: object) -> object:
    """Return the type of an option: tuple for ``tuple[int, ...]``, bool for ``bool | None``."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        (kind,) = (each for each in get_args(annotation) if each is not type(None))
        return kind_of(kind)
    return origin or annotation


def written(value: object) -> str:
    """Return a value in the form of a configuration."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, tuple):
        return ",".join(map(str, cast(tuple[object, ...], value)))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else str(value)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar of some names, ignoring case; None if none is similar."""
    by_case = {each.upper(): each for each in known}
    found = difflib.get_close_matches(name.upper(), by_case, 1)
    return by_case[found[0]] if found else None


@cache
def effects(group: type[OptionGroup]) -> dict[str, str]:
    """Return the text of each field of a group, as one line."""
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
