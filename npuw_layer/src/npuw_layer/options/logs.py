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
    empty leaves it to whoever configures logging. Unless somebody does, it goes to stderr."""

    def set_log_level(self) -> None:
        """Have the logger tell what was asked for, if anything was."""
        if not self.log_level:
            return
        logger = logging.getLogger("npuw_layer")
        logger.setLevel(_LEVELS[self.log_level])
        if not logger.handlers:
            logger.addHandler(_to_stderr())


def _to_stderr() -> logging.Handler:
    """Show what no handler of the application takes.

    Python does so of warnings alone; whoever sets LOG_LEVEL and nothing else wants to see the rest.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[%(levelname)s] %(name)s: %(message)s"))
    handler.addFilter(lambda _: not logging.getLogger().handlers)
    return handler
