"""Enumerations that behave as those of openvino_genai."""

from __future__ import annotations

from enum import Enum


class NamedEnum(Enum):
    """Enumeration whose members convert to integers, equal none, and have no order."""

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value
