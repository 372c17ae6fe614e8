"""Text tests of passes: IR before, CHECK lines after, and equal results of both.

A test is a file of IR with comments::

    // PASS: fuse-rms                    passes to run, separated by commas, with their options
    // TOLERANCE: 0.01                   relative tolerance of results; 1e-6 by default
    // VERIFY: no                        skip verification: shapes of the result are not refreshed
    // NUMBERS: x=f32[2,3], ids=i64<8    shapes (and bounds) of dynamic inputs; "no": no comparison
    // CHECK: …                          expected text of the result
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.passes import ModulePass, PassPipeline

from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.elements import NUMPY, Array
from compiler_layer.model import Model, context
from compiler_layer.pipeline import available_passes
from compiler_layer.reference.interpreter import Interpreter


@dataclass(frozen=True, slots=True)
class PassTest:
    """A test as read from its file."""

    text: str
    passes: str
    tolerance: float
    numbers: str
    verify: str

    @staticmethod
    def read(path: Path) -> PassTest:
        """Read a test."""
        text = path.read_text()

        def option(name: str, default: str) -> str:
            found = re.search(rf"^// {name}: (.*)$", text, re.M)
            return found[1].strip() if found else default

        return PassTest(
            text,
            option("PASS", ""),
            float(option("TOLERANCE", "1e-6")),
            option("NUMBERS", ""),
            option("VERIFY", ""),
        )

    def run(self, known: Mapping[str, type[ModulePass]] | None = None) -> str:
        """Run the passes; return the text of the result.

        Args:
            known: passes by name; the compiler's by default.

        Raises:
            AssertionError: the result is invalid or computes other values.
        """
        before, model = Model.parse(self.text), Model.parse(self.text)
        for each in parse_passes(self.passes, known):
            each.apply(context(), model.module)
        if self.verify != "no":
            model.verify()
        if self.numbers != "no":
            self._compare(before, model)
        return model.text()

    def _compare(self, before: Model, after: Model) -> None:
        inputs = random_inputs(before, _shapes(self.numbers))
        expected, actual = Interpreter(before).run(inputs), Interpreter(after).run(inputs)
        for name, values in expected.items():
            error = np.abs(actual[name].astype(float) - values.astype(float)).max(initial=0)
            scale = np.abs(values.astype(float)).max(initial=1e-30)
            assert error <= self.tolerance * scale, f"{name} changed by {error / scale:.1e}"


def parse_passes(
    text: str, known: Mapping[str, type[ModulePass]] | None = None
) -> list[ModulePass]:
    """Parse a pipeline of passes: ``fold-constants,tile{tiles=4}``."""
    every = available_passes() if known is None else known
    makers = {name: (lambda made=made: made) for name, made in every.items()}
    return list(PassPipeline.parse_spec(makers, text).passes)


def _shapes(text: str) -> dict[str, tuple[Shape, int]]:
    """Parse ``x=f32[2,3], ids=i64<8[1,4]``: the shape of each input, and a bound of its values."""
    found: dict[str, tuple[Shape, int]] = {}
    for name, bound, dims in re.findall(r"(\w+)=\w+?(?:<(\d+))?\[([\d,]*)\]", text):
        found[name] = (tuple(int(d) for d in dims.split(",")), int(bound or 4))
    return found


def random_inputs(model: Model, given: Mapping[str, tuple[Shape, int]]) -> dict[str, Array]:
    """Generate inputs of a model, the same ones each time."""
    random = np.random.RandomState(0)
    inputs: dict[str, Array] = {}
    for port in model.inputs:
        shape, bound = given.get(port.name, (shape_of(port.value), 4))
        kind = NUMPY[element_of(port.value)]
        integers = kind.kind in "iub"
        values = random.randint(0, bound, shape) if integers else random.standard_normal(shape)
        inputs[port.name] = np.asarray(values).astype(kind)
    return inputs
