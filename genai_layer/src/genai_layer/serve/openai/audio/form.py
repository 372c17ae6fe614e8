"""Fields and files of a form (multipart/form-data).

Source: RFC 7578; RFC 2046, section 5.1.
"""

from __future__ import annotations

import email
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.utils import collapse_rfc2231_value

from genai_layer.serve.errors import BadRequest

_MOST_PARTS = 64
_LIST = "[]"
"""End of the name of a field that may have several values."""


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
        name = head.get_param("name", header="content-disposition")
        if name is None:
            raise BadRequest("body: a part of the form has no name; name it")
        _add(form, collapse_rfc2231_value(name), head.get_filename() is not None, content)
    return form


def _boundary(content_type: str) -> bytes:
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or not boundary:
        raise BadRequest(
            f"Content-Type: {content_type!r} is no form; send multipart/form-data with a boundary"
        )
    return boundary.encode("latin-1", "replace")


def _parts(boundary: bytes, body: bytes) -> Iterator[tuple[Message, bytes]]:
    """Yield the header and the content of each part; text before and after the parts is skipped."""
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, _MOST_PARTS + 1)
    for part in parts[:_MOST_PARTS]:
        if part.startswith(b"--"):
            return
        head, _, content = part.partition(b"\r\n\r\n")
        yield email.message_from_bytes(head.lstrip()), content
    raise BadRequest(
        f"body: the form has no end, or more than {_MOST_PARTS} parts; send all of it, or fewer"
    )


def _add(form: Form, name: str, is_file: bool, content: bytes) -> None:
    values = form.files if is_file else form.fields
    if name in values and not name.endswith(_LIST):
        raise BadRequest(f"{name}: given twice; send one value", param=name)
    if is_file:
        form.files[name] = content
        return
    text = _text(name, content)
    if name.endswith(_LIST):
        earlier = form.fields.get(name, [])
        form.fields[name] = [*earlier, text]
    else:
        form.fields[name] = text


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadRequest(f"{name}: is no UTF-8; send text", param=name) from None
