"""Lines of a chat template at which errors occur, from the traceback.

An error at run time has a frame of the template, whose line jinja2 sets. While jinja2 compiles, its
parser and its nodes have lines. A SyntaxError of Python has a line of the generated code.
"""

from __future__ import annotations

import re
import traceback
from types import FrameType

import jinja2
from jinja2 import nodes
from jinja2.parser import Parser

FILE = "<template>"
"""jinja2's name for the file of a template without one, in tracebacks and generated code."""

_STATEMENT = re.compile(r"\s*(for|break|continue)\b")
"""Generated lines that are a statement of the template, which the debug information covers."""


def line_of(error: Exception, source: str, environment: jinja2.Environment) -> int | None:
    """Return the template's line of an error; None if it is not known.

    Args:
        error: an error of compiling or rendering the template.
        source: the template.
        environment: the template's.
    """
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    if isinstance(error, SyntaxError):
        return _mapped(error.lineno or 0, environment.compile(source, raw=True))
    frames = [*traceback.walk_tb(error.__traceback__)]
    lines = [line for frame, line in frames if frame.f_code.co_filename == FILE]
    lines = lines or [line for frame, _ in frames if (line := _compiled(frame)) is not None]
    return lines[-1] if lines else None


def _compiled(frame: FrameType) -> int | None:
    """Return the template's line that a frame of jinja2's parser or compiler is at."""
    node, parser = frame.f_locals.get("node"), frame.f_locals.get("self")
    if isinstance(node, nodes.Expr):
        return node.lineno
    return parser.stream.current.lineno if isinstance(parser, Parser) else None


def _mapped(line: int, generated: str) -> int | None:
    """Return the template's line of a line in the code that jinja2 generated."""
    lines = generated.splitlines()
    if not 0 < line <= len(lines) or not _STATEMENT.match(lines[line - 1]):
        return None
    pairs = re.findall(r"(\d+)=(\d+)", lines[-1])  # debug_info, a line there = a line here
    return max(
        ((int(here), int(there)) for there, here in pairs if int(here) <= line), default=(0, None)
    )[1]
