"""Options of reports and dumps: dumped files, profiling, the log."""

from __future__ import annotations

import logging
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup, readable

LAST = "last"


def selected(text: str, count: int) -> list[int]:
    """Parse "YES", "NO", or "0,1,last" into submodel numbers, without those out of range.

    Args:
        text: value of the option.
        count: number of submodels of a static model.

    Raises:
        ValueError: an entry is not of this form.
    """
    entries = [part.strip() for part in text.split(",") if part.strip()]
    if len(entries) == 1 and entries[0].upper() in ("YES", "NO"):
        return list(range(count)) if entries[0].upper() == "YES" else []
    for entry in entries:
        if entry.lower() != LAST and not (entry.isascii() and entry.isdigit()):
            raise ValueError(f'{entry!r} is not a number; write "YES", "NO" or "0,1,last"')
    numbers = {count - 1 if entry.lower() == LAST else int(entry) for entry in entries}
    return sorted(number for number in numbers if number < count)


def selects(text: str) -> bool:
    """Return whether an option's value selects any submodel."""
    return text.strip().upper() not in ("", "NO")


Selection = Annotated[str, readable(lambda text: selected(text, 0))]
"""Selected submodels of each static model; "" selects none."""


class DumpOptions(OptionGroup):
    """Submodels as files: IRs that OpenVINO loads, and their input and output tensors."""

    title: ClassVar[str] = "Dumps"

    dump_full: bool = Field(False, alias="NPUW_DUMP_FULL")
    """Write each static model as an IR, "prefill_1024.xml" with its ".bin", before it is cut into
    submodels; its states are inputs and outputs. Like IRs of submodels, it is written when the
    model is compiled, not loaded from the cache, and not for models with offloaded weights."""
    dump_subs: Selection = Field("", alias="NPUW_DUMP_SUBS")
    """Write submodels as IRs, "prefill_1024_03.xml": "YES" writes all, "0,1,last" those of a static
    model by position; "" or "NO" none. An uncut static model is its submodel 0. Variables are
    inputs and outputs, and a link between submodels has the same name in both."""
    dump_subs_dir: str = Field("", alias="NPUW_DUMP_SUBS_DIR")
    """The folder of all dumped files, created if missing; "" is the current folder."""
    dump_subs_on_fail: Selection = Field("", alias="NPUW_DUMP_SUBS_ON_FAIL")
    """Like NPUW_DUMP_SUBS, but only for a static model that cannot be compiled:
    "failed_prefill_1024_03.xml", and the error in "failed_prefill_1024.txt"."""
    dump_io: Selection = Field("", alias="NPUW_DUMP_IO")
    """Write inputs and outputs of submodels, selected as for NPUW_DUMP_SUBS, at each run:
    "prefill_1024_03_input_0.bin", type and shape in ".txt", and the list of names in
    "prefill_1024_03_ilist.txt"; also "output" and "olist". Each run overwrites the previous one."""
    dump_io_iters: bool = Field(False, alias="NPUW_DUMP_IO_ITERS")
    """Keep the tensors of every run, as "prefill_1024_03_iter_0000_input_0.bin", which may take
    much space."""

    @property
    def dumps_graphs(self) -> bool:
        """True if files are written when a model is compiled."""
        return self.dump_full or selects(self.dump_subs) or selects(self.dump_subs_on_fail)


class ProfilingOptions(OptionGroup):
    """Reports of the time that inferences take (``profiling_info``)."""

    title: ClassVar[str] = "Profiling"

    perf_count: bool = Field(False, alias="PERF_COUNT")
    """Record the times of a request's inferences on the simulated device (``profiling_info``).
    Blobs do not change. Programs on other devices than the NPU are left out, and so are
    conversations that share a batch (NPUW_LLM_BATCH_SLOTS)."""
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
    """Level of the logger npuw_layer, for all models of this process, from the time it is set. If
    empty, the application's logging decides; without one, messages go to stderr."""

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

    Python shows only warnings then; a user who sets only LOG_LEVEL expects to see the rest.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[%(levelname)s] %(name)s: %(message)s"))
    handler.addFilter(lambda _: not logging.getLogger().handlers)
    return handler
