"""Options of reports and dumps: dumped files, profiling, the log."""

from __future__ import annotations

import logging
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from npuw_layer.options.base import OptionGroup

LAST = "last"


def selected(text: str, count: int) -> list[int]:
    """Parse "YES", "NO", or "0,1,last" into submodel numbers, without those out of range.

    Args:
        text: value of the option.
        count: number of submodels of a static model.

    Raises:
        ValueError: an entry is none of these.
    """
    entries = [part.strip() for part in text.split(",") if part.strip()]
    if len(entries) == 1 and entries[0].upper() in ("YES", "NO"):
        return list(range(count)) if entries[0].upper() == "YES" else []
    for entry in entries:
        if entry.lower() != LAST and not (entry.isascii() and entry.isdigit()):
            raise ValueError(f'{entry!r} is no number; write "YES", "NO" or "0,1,last"')
    numbers = {count - 1 if entry.lower() == LAST else int(entry) for entry in entries}
    return sorted(number for number in numbers if number < count)


def selects(text: str) -> bool:
    """Return whether an option's value selects any submodel."""
    return text.strip().upper() not in ("", "NO")


def _checked(text: str) -> str:
    selected(text, 0)
    return text


Selection = Annotated[str, AfterValidator(_checked)]
"""Selected submodels of each static model; "" selects none."""


class DumpOptions(OptionGroup):
    """Submodels as files: IRs that OpenVINO loads, and their input and output tensors."""

    title: ClassVar[str] = "Dumps"

    dump_full: bool = Field(False, alias="NPUW_DUMP_FULL")
    """Writes each static model as an IR, "prefill_1024.xml" with its ".bin", before it is cut into
    submodels; its states are inputs and outputs. Like those of submodels it is written when it is
    compiled, not when it is taken from the cache, and not of models whose weights are offloaded."""
    dump_subs: Selection = Field("", alias="NPUW_DUMP_SUBS")
    """Writes submodels as IRs, "prefill_1024_03.xml": "YES" all, "0,1,last" those of a static model
    by their places; "" or "NO" none. A static model that is not cut is its submodel 0. Variables
    are inputs and outputs, and what links submodels has a name in both."""
    dump_subs_dir: str = Field("", alias="NPUW_DUMP_SUBS_DIR")
    """The folder for all that is written so; it is made. "" is the one that the process is in."""
    dump_subs_on_fail: Selection = Field("", alias="NPUW_DUMP_SUBS_ON_FAIL")
    """As NPUW_DUMP_SUBS, but only of a static model that cannot be compiled:
    "failed_prefill_1024_03.xml", and in "failed_prefill_1024.txt" why."""
    dump_io: Selection = Field("", alias="NPUW_DUMP_IO")
    """Writes what goes in and out of submodels, chosen as for NPUW_DUMP_SUBS, whenever they run:
    "prefill_1024_03_input_0.bin", its type and shape in ".txt", and the names of all in
    "prefill_1024_03_ilist.txt"; "output" and "olist" likewise. Each run replaces the one before."""
    dump_io_iters: bool = Field(False, alias="NPUW_DUMP_IO_ITERS")
    """Keeps the tensors of every run, as "prefill_1024_03_iter_0000_input_0.bin". That may be
    much."""

    @property
    def dumps_graphs(self) -> bool:
        """True if files are written when a model is compiled."""
        return self.dump_full or selects(self.dump_subs) or selects(self.dump_subs_on_fail)


class ProfilingOptions(OptionGroup):
    """Reports of the time that inferences take (``profiling_info``)."""

    title: ClassVar[str] = "Profiling"

    perf_count: bool = Field(False, alias="PERF_COUNT")
    """Lets a request tell what its inferences took on the simulated device: ``profiling_info``.
    Blobs are the same with it and without. What runs on other devices than the NPU is left out, and
    so are conversations that share a batch (NPUW_LLM_BATCH_SLOTS)."""
    profiling_type: Literal["MODEL", "INFER"] = Field("MODEL", alias="NPU_PROFILING_TYPE")
    """Times reported with PERF_COUNT: MODEL, each layer of the last inference; INFER, the average,
    shortest and longest time of all inferences."""


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
    """Level of the logger npuw_layer, for all models of this process, from when it is set. Empty
    leaves it to the application's logging; without any, messages go to stderr."""

    def set_log_level(self) -> None:
        """Set the logger's level, if the option is set."""
        if not self.log_level:
            return
        logger = logging.getLogger("npuw_layer")
        logger.setLevel(_LEVELS[self.log_level])
        if not logger.handlers:
            logger.addHandler(_to_stderr())


def _to_stderr() -> logging.Handler:
    """Return a handler for messages that the application has no handler for.

    Python shows only warnings then; a user who sets only LOG_LEVEL wants to see the rest.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[%(levelname)s] %(name)s: %(message)s"))
    handler.addFilter(lambda _: not logging.getLogger().handlers)
    return handler
