"""Names and addresses of a server, the header ``Host`` that names one, and origins of pages.

Source: RFC 9110, 7.2 (Host); RFC 6761, 6.3 (localhost); RFC 6454, 6.2 (Origin).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HOST = re.compile(r"(?:\[(?P<literal>[^]]*)\]|(?P<name>[^:\[\]]+))(?::[0-9]*)?")
"""A name or an IPv4 address, or an IPv6 address in brackets; and a port."""

_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/:@?#\[\]]+|\[[^]]+\])(?P<port>:\d+)?"
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")

_LOCAL = "localhost"


class Hosts:
    """Names and addresses of the server; those of the loopback interface always belong to it.

    Names are compared without case and without the dot at their end.

    Args:
        own: further names and addresses. An unspecified address, 0.0.0.0 or ::, stands for all
            addresses of the machine: a page cannot be loaded from an address that is not its own.

    Raises:
        ValueError: a text is neither a name nor an address.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = {parse_host(text) for text in own}
        self._all = any(not isinstance(one, str) and one.is_unspecified for one in self._own)

    def __contains__(self, header: str) -> bool:
        """Return whether a header ``Host``, which may have a port, names the server."""
        match = _HOST.fullmatch(header.strip())
        if match is None:
            return False
        try:
            host = parse_host(match["literal"] or match["name"])
        except ValueError:
            return False
        if isinstance(host, str):
            return host in self._own or host == _LOCAL or host.endswith(f".{_LOCAL}")
        return host in self._own or host.is_loopback or self._all


def parse_host(text: str) -> str | Address:
    """Return an address, or a name in lower case without the dot at its end.

    Raises:
        ValueError: the text is neither.
    """
    name = text.lower().removesuffix(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{text!r} is no name of a host") from None
        return name
    return getattr(address, "ipv4_mapped", None) or address


def parse_origin(text: str) -> str:
    """Return an origin as browsers write it; ``*`` for all, ``null`` for pages without one.

    Raises:
        ValueError: no browser sends such an origin.
    """
    origin = text.lower()
    if origin in ("*", "null"):
        return origin
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        raise ValueError("an origin is SCHEME://HOST[:PORT], without a path or a slash at its end")
    scheme, host, port = match["scheme"], match["host"], match["port"] or ""
    if port and (port == _DEFAULT_PORTS.get(scheme) or port != f":{int(port[1:]) & 0xFFFF}"):
        raise ValueError(f"browsers send no port {port[1:]} with {scheme}; leave it out")
    parsed = parse_host(host.strip("[]"))
    if not isinstance(parsed, str) and host.strip("[]") != str(parsed):
        raise ValueError(f"browsers write the address {host} as {parsed}")
    return origin
