"""A request's record of its inferences, for PERF_COUNT and NPU_PROFILING_TYPE."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from npuw_layer.backends.recording import ProgramRun, recording
from npuw_layer.errors import NpuwUsageError
from npuw_layer.execution.profiling.info import ProfilingInfo, node_infos, statistic
from npuw_layer.options import Options


def make_profile(options: Options) -> Profile:
    """Return the profile that the options request."""
    if not options.perf_count:
        return Profile()
    return LastInference() if options.profiling_type == "MODEL" else InferenceTimes()


class Profile:
    """Profile without records: PERF_COUNT = NO."""

    def __init__(self) -> None:
        self._begun = False

    @contextmanager
    def inference(self) -> Generator[None]:
        """Record an inference: a context around it."""
        self._begun = True
        yield

    def info(self) -> list[ProfilingInfo]:
        """Return the recorded nodes.

        Raises:
            NpuwUsageError: no inference has run yet.
        """
        if not self._begun:
            raise NpuwUsageError("profiling_info: no inference has run yet; run one first")
        return self._info()

    def _info(self) -> list[ProfilingInfo]:
        return []


class LastInference(Profile):
    """MODEL: the layers of the last inference, program by program."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[ProgramRun] = ()

    @contextmanager
    def inference(self) -> Generator[None]:
        """Record the programs of an inference; of a failed one, those before the failure."""
        with super().inference(), recording() as self._runs:
            yield

    def _info(self) -> list[ProfilingInfo]:
        return [info for run in self._runs for info in node_infos(run)]


class InferenceTimes(Profile):
    """INFER: busy time of the device in inferences, without failed ones."""

    def __init__(self) -> None:
        super().__init__()
        self._count = self._sum = self._most = 0
        self._least: int | None = None

    @contextmanager
    def inference(self) -> Generator[None]:
        """Record the time of an inference."""
        with super().inference(), recording() as runs:
            yield
        took = sum(run.total_ns for run in runs)
        self._count += 1
        self._sum += took
        self._most = max(self._most, took)
        self._least = took if self._least is None else min(self._least, took)

    def _info(self) -> list[ProfilingInfo]:
        if self._least is None:
            return []
        return [
            statistic("AVG", self._sum // self._count),
            statistic("MIN", self._least),
            statistic("MAX", self._most),
        ]
