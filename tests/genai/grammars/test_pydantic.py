"""Texts of the grammars of pydantic's types, read by pydantic and by jsonschema_rs."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import jsonschema_rs
import pydantic
import pytest
from pydantic import BaseModel, Field, TypeAdapter
from pydantic import types as kinds
from pydantic.networks import IPvAnyAddress, IPvAnyInterface, IPvAnyNetwork
from tests.genai.grammars.sampling import matcher_of, sample


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Pair(NamedTuple):
    a: int
    b: str


class Inner(BaseModel):
    path: pathlib.Path
    colors: set[Color]


class Outer(BaseModel):
    inner: Inner | None
    secret: pydantic.SecretStr
    data: bytes
    by_color: dict[Color, Inner]
    host: ipaddress.IPv4Address | ipaddress.IPv6Address
    huge: Annotated[int, Field(ge=-(10**300), le=10**300)]


READ: dict[str, Any] = {
    **{one.__name__: one for one in (int, float, bool, str, bytes, list, dict)},
    **{one.__name__: one for one in (datetime.date, datetime.datetime, datetime.time)},
    **{one.__name__: one for one in (datetime.timedelta, uuid.UUID, pathlib.Path)},
    **{one.__name__: one for one in (Color, Mixed, Pair, Inner, Outer)},
    **{
        f"{one.__name__}": one
        for one in (ipaddress.IPv4Address, ipaddress.IPv4Interface, ipaddress.IPv4Network)
    },
    **{
        f"{one.__name__}": one
        for one in (ipaddress.IPv6Address, ipaddress.IPv6Interface, ipaddress.IPv6Network)
    },
    **{one.__name__: one for one in (IPvAnyAddress, IPvAnyInterface, IPvAnyNetwork)},
    **{f"uuid{n}": getattr(kinds, f"UUID{n}") for n in (1, 3, 4, 5, 6, 7, 8)},
    "SecretStr": pydantic.SecretStr,
    "SecretBytes": pydantic.SecretBytes,
    "Base64Bytes": pydantic.Base64Bytes,
    "Base64UrlBytes": pydantic.Base64UrlBytes,
    "Fraction": fractions.Fraction,
    "ByteSize": pydantic.ByteSize,
    "PositiveInt": pydantic.PositiveInt,
    "NonPositiveFloat": pydantic.NonPositiveFloat,
    "huge integers": Annotated[int, Field(ge=-(10**300), lt=10**300)],
    "huge floats": Annotated[float, Field(gt=-1e300, le=1e300)],
    "huge texts": Annotated[str, Field(max_length=10**18)],
    "set[Literal]": set[Literal["a", "b", "c"]],
    "set[bool]": Annotated[set[bool], Field(min_length=1)],
    "frozenset[Color]": frozenset[Color],
    "set of one": Annotated[set[str], Field(max_length=1)],
    "dict[Literal]": dict[Literal["a", "b"], int],
    "dict[Color]": dict[Color, Inner],
    "dict[UUID]": dict[uuid.UUID, int],
    "dict[date]": dict[datetime.date, int],
    "dict[time]": dict[datetime.time, int],
    "dict[datetime]": dict[datetime.datetime, int],
    "dict[Path]": dict[pathlib.Path, int],
    "dict[IPv4Address]": dict[ipaddress.IPv4Address, int],
    "dict of short names": dict[Annotated[str, Field(min_length=2, max_length=3)], int],
    "dict of a pattern": dict[Annotated[str, Field(pattern="^a+$")], int],
    "tuple": tuple[int, str],
    "tuple...": tuple[int, ...],
    "Sequence": Sequence[int],
    "deque": collections.deque[int],
    "Counter": collections.Counter[Color],
    "int | str": int | str,
    "list[Inner]": list[Inner],
}
"""Types of which pydantic reads each text of the grammar."""

VALID: dict[str, Any] = {
    "FilePath": pydantic.FilePath,
    "DirectoryPath": pydantic.DirectoryPath,
    "NewPath": pydantic.NewPath,
    "Json": pydantic.Json[int],
    "Base64Str": pydantic.Base64Str,
    "FutureDate": pydantic.FutureDate,
    "AwareDatetime": pydantic.AwareDatetime,
    "Decimal": Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)],
    "AnyUrl": pydantic.AnyUrl,
    "MongoDsn": pydantic.MongoDsn,
    "complex": complex,
}
"""Types that ask for more than their schema, e.g. that a file exists."""

UNSUPPORTED: dict[str, tuple[Any, str]] = {
    "set[str]": (set[str], "uniqueItems"),
    "set of many": (set[Literal[1, 2, 3, 4, 5, 6]], "uniqueItems"),
    "Pattern": (re.Pattern[str], "regex"),
    "ZoneInfo": (zoneinfo.ZoneInfo, "zoneinfo"),
}
"""Types with a keyword that no grammar can follow."""


@pytest.mark.parametrize("name", [*READ, *VALID])
def test_texts_of_a_type_are_valid(name: str) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(READ.get(name, VALID.get(name)))
    schema = adapter.json_schema()
    validator, matcher = (
        jsonschema_rs.validator_for(schema, validate_formats=True),
        matcher_of(schema),
    )
    assert not matcher.is_error(), matcher.get_error()
    for seed in range(4):
        text = sample(matcher, seed)
        if name in READ:
            adapter.validate_json(text)
        # pydantic's own formats are no formats for a validator.
        assert validator.is_valid(json.loads(text)), text


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_types_are_rejected_by_the_keyword(name: str) -> None:
    kind, keyword = UNSUPPORTED[name]
    schema = TypeAdapter[Any](kind).json_schema()
    assert keyword in matcher_of(schema).get_error()
    assert not matcher_of(schema, lenient=True).is_error()
