"""Patterns of the formats of texts: those of JSON Schema, and those that pydantic adds.

A pattern matches only texts of the format, but not always all of them: years are from 1000 to 9999,
numbers of a duration have four digits, and ``::`` of an IPv6 network is at its end.

Source: JSON Schema 2020-12 Validation, section 7.3; RFC 3339, 4122, 4291, 4632, 4648; the formats
and validators of pydantic, measured in tests/genai/grammars/test_pydantic.py.
"""

from __future__ import annotations


def _any_of(*options: str) -> str:
    return f"(?:{'|'.join(options)})"


_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_GROUP = "[0-9a-fA-F]{1,4}"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_IPV6 = _any_of(
    f"(?:{_GROUP}:){{7}}{_GROUP}",
    f"::(?:{_GROUP}(?::{_GROUP}){{0,6}})?",
    *(
        f"(?:{_GROUP}:){{{before}}}:(?:{_GROUP}(?::{_GROUP}){{0,{6 - before}}})?"
        for before in range(1, 7)
    ),
    f"(?:{_GROUP}:){{7}}:",
)


def _numbers(first: int, last: int) -> str:
    return _any_of(*map(str, range(first, last + 1)))


def _multiples(bits: int, width: int, base: str) -> str:
    """Return the numbers of ``width`` bits of which only the first ``bits`` may be 1."""
    return _any_of(*(format(value, base) for value in range(0, 1 << width, 1 << (width - bits))))


def _ipv4_network(bits: int) -> str:
    """Return the networks whose prefix has a length."""
    whole, part = divmod(bits, 8)
    octets = [_OCTET] * whole + [_multiples(part, 8, "d")] * bool(part)
    return r"\.".join([*octets, *["0"] * (4 - len(octets))]) + f"/{bits}"


def _ipv6_network(bits: int) -> str:
    """Return the networks whose prefix ends within a group."""
    whole, part = divmod(bits, 16)
    digits, rest = divmod(part, 4)
    last = "[0-9a-f]" * digits + (_multiples(rest, 4, "x") if rest else "")
    zeros = "0" * (4 - digits - bool(rest))
    return f"(?:{_GROUP}:){{{whole}}}{last}{zeros}{'::' if whole < 7 else ''}/{bits}"


_IPV4_NETWORK = _any_of(*map(_ipv4_network, range(33)))
_IPV6_NETWORK = _any_of(
    f"::/{_numbers(0, 128)}",
    *(f"(?:{_GROUP}:){{{n}}}:/{_numbers(16 * n, 128)}" for n in range(1, 8)),
    *(_ipv6_network(bits) for bits in range(128) if bits % 16),
)
_IPV4_INTERFACE = f"{_IPV4}(?:/{_numbers(0, 32)})?"
_IPV6_INTERFACE = f"{_IPV6}(?:/{_numbers(0, 128)})?"

_DATE = "[1-9][0-9]{3}-" + _any_of(
    "(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])",
    "(?:0[13-9]|1[0-2])-(?:29|30)",
    "(?:0[13578]|1[02])-31",
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_CLOCK})"


def _parts(*units: str) -> str:
    """Return numbers of units, from any of them on without a gap."""
    tail = ""
    options: list[str] = []
    for unit in reversed(units):
        options.append(f"[0-9]{{1,4}}{unit}{tail}")
        tail = f"(?:{options[-1]})?"
    return _any_of(*options)


_HOURS = f"T{_parts('H', 'M', 'S')}"
_DAYS = _parts("Y", "M", "D")
_DURATION = "P" + _any_of(f"{_DAYS}(?:{_HOURS})?", _HOURS, "[0-9]{1,4}W")


def _uuid(version: str) -> str:
    x = "[0-9a-fA-F]"
    variant = x if version == x else "[89abAB]"
    return f"{x}{{8}}-{x}{{4}}-{version}{x}{{3}}-{variant}{x}{{3}}-{x}{{12}}"


def _base64(others: str) -> str:
    x = f"[A-Za-z0-9{others}]"
    return f"(?:{x}{{4}})*(?:{x}[AQgw]==|{x}{{2}}[AEIMQUYcgkosw048]=)?"


_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
_ADDRESS = (
    rf"[A-Za-z0-9_+-]{{1,20}}(?:\.[A-Za-z0-9_+-]{{1,20}}){{0,2}}"
    rf"@(?:{_LABEL}\.){{1,4}}[A-Za-z]{{2,9}}"
)
_NAME = "[A-Za-z0-9_-]+"
_HOST = f"{_LABEL}(?:\\.{_LABEL})*(?::[1-9][0-9]{{0,3}})?"
_HOSTS = f"[a-z][a-z0-9+]*://(?:{_NAME}:{_NAME}@)?{_HOST}(?:,{_HOST})*(?:/{_NAME})?"

ANY = frozenset({"path", "file-path", "directory-path", "password", "binary"})
"""Formats of all texts: a text alone does not show whether it is of the format."""

PATTERNS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": _DURATION,
    "uuid": _uuid("[0-9a-fA-F]"),
    **{f"uuid{version}": _uuid(str(version)) for version in range(1, 9)},
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "ipv4interface": _IPV4_INTERFACE,
    "ipv6interface": _IPV6_INTERFACE,
    "ipv4network": _IPV4_NETWORK,
    "ipv6network": _IPV6_NETWORK,
    "ipvanyaddress": _any_of(_IPV4, _IPV6),
    "ipvanyinterface": _any_of(_IPV4_INTERFACE, _IPV6_INTERFACE),
    "ipvanynetwork": _any_of(_IPV4_NETWORK, _IPV6_NETWORK),
    "base64": _base64("+/"),
    "base64url": _base64("_-"),
    "fraction": "-?[0-9]{1,18}(?:/[1-9][0-9]{0,17})?",
    "email": _ADDRESS,
    "multi-host-uri": _HOSTS,
    "name-email": f"(?:[A-Za-z]+(?: [A-Za-z]+)* <{_ADDRESS}>|{_ADDRESS})",
}
"""Regular expression of the whole text, by format."""
