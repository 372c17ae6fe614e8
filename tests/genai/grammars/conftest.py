"""Texts of a grammar, without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from genai_layer import GenerationConfig, PerfMetrics, StructuredOutputConfig, Tokenizer
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.grammars.constraint import GrammarConstraint
from genai_layer.testing.toy import EOS, ids_of

Constrain = Callable[[StructuredOutputConfig], GrammarConstraint]
Accepts = Callable[[StructuredOutputConfig, str], bool]


@pytest.fixture
def compiler(folder: Path) -> GrammarCompiler:
    return GrammarCompiler(Tokenizer(folder))


@pytest.fixture
def constrain(compiler: GrammarCompiler) -> Constrain:
    def make(config: StructuredOutputConfig) -> GrammarConstraint:
        constraint = compiler.constraint(
            GenerationConfig(stop_token_ids={EOS}, structured_output_config=config), PerfMetrics()
        )
        assert constraint is not None
        return constraint

    return make


@pytest.fixture
def accepts(constrain: Constrain) -> Accepts:
    """Return a function: whether a grammar allows each byte of a text, and then its end."""

    def check(config: StructuredOutputConfig, text: str) -> bool:
        constraint = constrain(config)
        for token in [*ids_of(text), EOS]:
            if constraint.process(np.zeros(300, np.float32))[token] == -np.inf:
                return False
            constraint.advance(token)
        return True

    return check
