"""Integer enumerations that print as those of openvino_genai."""

from __future__ import annotations

from enum import IntEnum


class NamedEnum(IntEnum):
    """Enumeration whose members print with class and name, e.g. ``StreamingStatus.STOP``."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, format_spec: str, /) -> str:
        return format(str(self), format_spec)
