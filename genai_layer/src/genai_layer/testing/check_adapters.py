"""Checks of a runtime that supports adapters; no test framework is needed.

``check_adapters(setting)`` raises AssertionError with a description of the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.abilities import LowRank, SupportsAdapters
from genai_layer.lora.controller import AdapterStates
from genai_layer.runtime import Array, CompiledModel, Core, InferRequest
from genai_layer.testing.check_runtime import TOLERANCE
from genai_layer.testing.inferences import distance, logits_of

_RANK = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """Runtime and model to check."""

    make: Callable[[], Core]
    """Returns the runtime."""
    model: Path
    """A language model whose weights are floats."""
    device: str
    tokens: Sequence[int]
    """A few token ids of the model."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tolerance: float = TOLERANCE
    """Largest difference of logits, relative to the largest logit."""

    def compiled(self, mode: str, seed: int = 0) -> CompiledModel:
        """Compile the model with random adapters of a seed."""
        core, added = self.core(), self.added(seed)
        return core.compile_adapted(self.model, self.device, self.config, added, mode)

    def core(self) -> SupportsAdapters:
        """Create the runtime."""
        core = self.make()
        assert isinstance(core, SupportsAdapters), "the runtime has no compile_adapted"
        return core

    def added(self, seed: int) -> dict[str, LowRank]:
        """Draw adapters for all adaptable matmuls."""
        draw, found = np.random.default_rng(seed), dict[str, LowRank]()
        for name, (inputs, outputs) in self.core().adaptable_matmuls(self.model).items():
            a = draw.standard_normal((_RANK, inputs)) / np.sqrt(inputs)
            b = draw.standard_normal((outputs, _RANK)) / np.sqrt(outputs)
            alpha = np.full((1, _RANK), 0.5, np.float32)
            found[name] = LowRank(a.astype(np.float32), alpha, b.astype(np.float32))
        return found

    def plain(self) -> Array:
        """Return the logits without adapters."""
        compiled = self.make().compile_model(self.model, self.device, self.config)
        return self.logits(compiled.create_infer_request())

    def logits(self, request: InferRequest) -> Array:
        """Return the logits of a new conversation."""
        request.reset_state()
        return logits_of(request, self.tokens)

    def assert_close(self, found: Array, expected: Array, what: str) -> None:
        """Assert that logits are equal within the tolerance."""
        error = distance(found, expected)
        assert error <= self.tolerance, f"{what}: logits differ by {error:.2e} of the largest logit"

    def assert_other(self, found: Array, expected: Array, what: str) -> None:
        """Assert that logits differ."""
        assert distance(found, expected) > 10 * self.tolerance, f"{what}: logits are equal"


def check_adapters(setting: Setting) -> None:
    """Run all checks.

    Raises:
        AssertionError: the runtime violates ``abilities.SupportsAdapters``.
    """
    for check in CHECKS:
        check(setting)


def check_matmuls_have_names_and_widths(setting: Setting) -> None:
    """Every adaptable matmul has a name and positive widths."""
    products = setting.core().adaptable_matmuls(setting.model)
    assert products, "the model has no adaptable matmul"
    assert all(name and min(widths) > 0 for name, widths in products.items()), f"{products}"


def check_states_match_the_matmuls(setting: Setting) -> None:
    """Each adapted matmul has three states, and no other matmul has any."""
    request = setting.compiled("DYNAMIC").create_infer_request()
    found = AdapterStates(request.query_state()).products()
    expected = setting.core().adaptable_matmuls(setting.model)
    assert found == dict(expected), f"states of {found}, not of {expected}"


def check_empty_tensors_add_nothing(setting: Setting) -> None:
    """Empty tensors have no effect, before and after other adapters."""
    request, plain = setting.compiled("DYNAMIC").create_infer_request(), setting.plain()
    states = AdapterStates(request.query_state())
    for added in ({}, setting.added(0), {}):
        states.set(added)
        if not added:
            setting.assert_close(setting.logits(request), plain, "empty tensors")
        else:
            setting.assert_other(setting.logits(request), plain, "adapters")


def check_adapters_are_of_one_request_and_outlast_conversations(setting: Setting) -> None:
    """Adapters of one request outlast ``reset_state``, and do not affect another request."""
    compiled = setting.compiled("DYNAMIC")
    one, two = compiled.create_infer_request(), compiled.create_infer_request()
    AdapterStates(one.query_state()).set(setting.added(1))
    AdapterStates(two.query_state()).set({})
    first = setting.logits(one)
    setting.assert_close(setting.logits(two), setting.plain(), "another request")
    setting.assert_close(setting.logits(one), first, "after reset_state")


def check_alphas_scale_what_is_added(setting: Setting) -> None:
    """Adapters with alphas of 0 add nothing."""
    request = setting.compiled("DYNAMIC").create_infer_request()
    states, added = AdapterStates(request.query_state()), setting.added(1)
    states.set(added)
    zero = {name: LowRank(each.a, each.alpha * 0, each.b) for name, each in added.items()}
    states.set_alphas(zero)
    setting.assert_close(setting.logits(request), setting.plain(), "alphas of 0")


def check_all_modes_add_the_same(setting: Setting) -> None:
    """States, constants and fused weights result in equal logits."""
    request = setting.compiled("DYNAMIC", 2).create_infer_request()
    AdapterStates(request.query_state()).set(setting.added(2))
    expected = setting.logits(request)
    setting.assert_other(expected, setting.plain(), "adapters")
    for mode in ("STATIC", "FUSE"):
        found = setting.compiled(mode, 2).create_infer_request()
        assert not AdapterStates(found.query_state()), f"{mode} has states"
        setting.assert_close(setting.logits(found), expected, mode)
    fixed = setting.compiled("STATIC_RANK", 3).create_infer_request()
    AdapterStates(fixed.query_state()).set(setting.added(2))
    setting.assert_close(setting.logits(fixed), expected, "STATIC_RANK")


CHECKS = (
    check_matmuls_have_names_and_widths,
    check_states_match_the_matmuls,
    check_empty_tensors_add_nothing,
    check_adapters_are_of_one_request_and_outlast_conversations,
    check_alphas_scale_what_is_added,
    check_all_modes_add_the_same,
)
"""All checks; each accepts a setting."""
