"""An NPU that counts programs, runs and bindings."""

from __future__ import annotations

from collections import Counter

from compiler_layer.partition.compiled import ROWS
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import LoadedModel, Memory, Program


class CountingNpu(LevelZeroDevice):
    """NPU that counts programs, runs and bindings of weights, of experts and others separately."""

    def __init__(self) -> None:
        super().__init__(StaticCompiler(), "4000")
        self.runs: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.loaded: Counter[str] = Counter()
        self.bound: Counter[str] = Counter()

    def load(self, program: bytes | memoryview) -> LoadedModel:
        return _Counted(super().load(program), self)


class _Counted:
    def __init__(self, loaded: LoadedModel, npu: CountingNpu) -> None:
        self.inputs = loaded.inputs
        self.outputs = loaded.outputs
        self._loaded = loaded
        self._npu = npu
        names = {info.name for info in loaded.inputs}
        self._kind = "expert" if ROWS in names else "other"
        npu.loaded[self._kind] += 1

    def create_program(self) -> Program:
        self._npu.made[self._kind] += 1
        return _CountedProgram(self._loaded.create_program(), self._npu, self._kind)


class _CountedProgram:
    def __init__(self, program: Program, npu: CountingNpu, kind: str) -> None:
        self._program = program
        self._npu = npu
        self._kind = kind

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        self._npu.bound[self._kind] += name.startswith(WEIGHT_PREFIX)
        self._program.bind(name, memory, offset)

    def prepare(self) -> None:
        self._program.prepare()

    def run(self) -> None:
        self._npu.runs[self._kind] += 1
        self._program.run()
