"""What is told while models are compiled and run."""

from __future__ import annotations

import logging
from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup

_LEVELS = {
    "LOG_NONE": logging.CRITICAL + 10,
    "LOG_ERROR": logging.ERROR,
    "LOG_WARNING": logging.WARNING,
    "LOG_INFO": logging.INFO,
    "LOG_DEBUG": logging.DEBUG,
    "LOG_TRACE": logging.DEBUG // 2,
}


class LogOptions(OptionGroup):
    """The log."""

    title: ClassVar[str] = "Log"

    log_level: Literal[
        "", "LOG_NONE", "LOG_ERROR", "LOG_WARNING", "LOG_INFO", "LOG_DEBUG", "LOG_TRACE"
    ] = Field("", alias="LOG_LEVEL")
    """What the logger npuw_layer tells, of all models of this process, from when it is set;
    empty leaves it to whoever configures logging."""

    def set_log_level(self) -> None:
        """Have the logger tell what was asked for, if anything was."""
        if self.log_level:
            logging.getLogger("npuw_layer").setLevel(_LEVELS[self.log_level])
