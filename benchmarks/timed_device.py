"""Device that adds up the predicted time of what it runs."""

from __future__ import annotations

from compiler_layer.explain import explain
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_programs import LoadedBlob, RecordedProgram


class TimedDevice(LevelZeroDevice):
    """Device that adds up the predicted NPU time of the programs that it runs."""

    def __init__(self, platform: str) -> None:
        super().__init__(StaticCompiler(), platform)
        self.seconds = 0.0

    def load(self, program: bytes | memoryview) -> LoadedBlob:
        """Load a blob, and predict its time."""
        return _TimedBlob(super().load(program), self, explain(program).total_ns * 1e-9)


class _TimedBlob(LoadedBlob):
    def __init__(self, loaded: LoadedBlob, device: TimedDevice, seconds: float) -> None:
        vars(self).update(vars(loaded))
        self._loaded = loaded  # keeps the graph, which is released with this object, alive
        self.device = device
        self.seconds = seconds

    def create_program(self) -> RecordedProgram:
        return _TimedProgram(self)


class _TimedProgram(RecordedProgram):
    def __init__(self, blob: _TimedBlob) -> None:
        super().__init__(blob)
        self._blob = blob

    def _execute(self, *behind: RecordedProgram) -> None:
        super()._execute(*behind)  # the program, and the LM head that is submitted with it
        for each in (self, *behind):
            assert isinstance(each, _TimedProgram)
            each._blob.device.seconds += each._blob.seconds
