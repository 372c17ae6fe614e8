"""Fields and files of a form (multipart/form-data).

Source: RFC 7578; RFC 2046, section 5.1; HTML, section "Multipart form data" (no backslash escapes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from genai_layer.serve.errors import BadRequest

_MOST_PARTS = 64
_LIST = "[]"
"""End of the name of a field that may have several values."""
_PARAMETER = re.compile(r';\s*([\w*-]+)=(?:"([^"]*)"|([^;\s]*))')
_DISPOSITION = re.compile(r"^content-disposition:\s*form-data\s*(;.*)$", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Form:
    """Values by name."""

    fields: dict[str, str | list[str]] = field(default_factory=dict[str, "str | list[str]"])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])


def read_form(content_type: str, body: bytes) -> Form:
    """Read a form.

    Args:
        content_type: the header, which has the boundary of the parts.
        body: the parts.

    Raises:
        BadRequest: the body is no form, a part has no name, or a field has several values.
    """
    form = Form()
    for head, content in _parts(_boundary(content_type), body):
        described = _DISPOSITION.search(head)
        parameters = _parameters(described[1] if described else "")
        if "name" not in parameters:
            raise BadRequest("body: a part of the form has no name; name it")
        _add(form, parameters["name"], content, not parameters.keys().isdisjoint(_FILE))
    return form


_FILE = ("filename", "filename*")
"""Parameters that a file has."""


def _parameters(text: str) -> dict[str, str]:
    """Return the parameters of a header by their names in lower case."""
    found = _PARAMETER.findall(text)
    return {name.lower(): quoted or bare for name, quoted, bare in found}


def _boundary(content_type: str) -> bytes:
    kind, mark, rest = content_type.partition(";")
    boundary = _parameters(mark + rest).get("boundary")
    if kind.strip().lower() != "multipart/form-data" or not boundary:
        raise BadRequest(
            f"Content-Type: {content_type!r} is no form; send multipart/form-data with a boundary"
        )
    return boundary.encode("latin-1")


def _parts(boundary: bytes, body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the header and the content of each part; text before and after the parts is skipped."""
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, _MOST_PARTS + 1)
    for part in parts[:_MOST_PARTS]:
        if part.startswith(b"--"):
            return
        head, _, content = part.partition(b"\r\n\r\n")
        yield head.decode(errors="replace"), content
    raise BadRequest(
        f"body: the form has no end, or more than {_MOST_PARTS} parts; send all of it, or fewer"
    )


def _add(form: Form, name: str, content: bytes, is_file: bool) -> None:
    several = name.endswith(_LIST) and not is_file
    if not several and (name in form.files or name in form.fields):
        raise BadRequest(f"{name}: given twice; send one value", param=name)
    if is_file:
        form.files[name] = content
    elif several:
        form.fields[name] = [*form.fields.get(name, ()), _text(name, content)]
    else:
        form.fields[name] = _text(name, content)


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadRequest(f"{name}: is no UTF-8; send text", param=name) from None
