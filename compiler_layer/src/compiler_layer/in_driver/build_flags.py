"""Build flags of a model: one line with types and layouts of its ports, and with options.

    --inputs_precisions="0:I64 1:FP16" --inputs_layouts="0:NC 1:NCHW" --outputs_precisions="0:FP32"
    --outputs_layouts="0:NCHW" --config NPU_TILES="4" PERF_COUNT="YES"

Source: docs/reference/driver_compiler.md#requests-for-ports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler_layer.errors import CompilerUsageError

PORT_FLAGS = ("inputs_precisions", "inputs_layouts", "outputs_precisions", "outputs_layouts")
"""Flags that request something of each port."""

_CONFIG = "--config"
_TOKEN = re.compile(r'\s*(?:(?P<config>--config)(?=\s|$)|(?P<name>(?:--)?\w+)="(?P<value>[^"]*)")')
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class BuildFlags:
    """Parsed build flags."""

    ports: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Requests by flag (``PORT_FLAGS``), then by the index or name of a port."""
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of options."""


def parse_build_flags(text: str) -> BuildFlags:
    """Parse build flags.

    Raises:
        CompilerUsageError: the text is malformed; the message shows the place.
    """
    ports: dict[str, dict[str, str]] = {}
    config: dict[str, str] | None = None
    at, text = 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _malformed(text, at, f'expected {_CONFIG} or NAME="VALUE"')
        name, value = found["name"], found["value"]
        if found["config"]:
            config = {} if config is None else config
        elif config is not None:
            config[name] = value
        elif name.startswith("--") and name.removeprefix("--") in PORT_FLAGS:
            ports[name.removeprefix("--")] = _requests(name, value)
        else:
            raise _malformed(text, at, f"{name} before {_CONFIG} is unknown")
        at = found.end()
    return BuildFlags(ports, config or {})


def _requests(flag: str, text: str) -> dict[str, str]:
    """Parse ``0:FP16 1:I64``; a name may contain colons."""
    requests: dict[str, str] = {}
    for part in text.split():
        port, _, wanted = part.rpartition(":")
        if not port or not wanted:
            raise CompilerUsageError(
                f"{flag}: {part[:_SHOWN]!r} is not NAME:VALUE; separate ports by spaces"
            )
        if port in requests:
            raise CompilerUsageError(f"{flag}: {port[:_SHOWN]!r} occurs twice; keep one")
        requests[port] = wanted
    return requests


def _malformed(text: str, at: int, problem: str) -> CompilerUsageError:
    place = text[at : at + _SHOWN].strip()
    return CompilerUsageError(f"build flags at {place!r}: {problem}")
