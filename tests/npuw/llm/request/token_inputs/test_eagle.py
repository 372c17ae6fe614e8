"""Eagle: a target returns hidden states of each token; a draft takes them, and returns its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.splitting import split

from npuw_layer import Core
from npuw_layer.errors import ModelError, TensorError
from npuw_layer.llm.plan.ruled_out import check_all_computed
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.tensors.token_outputs import TokenOutput

from .conftest import SMALL, VLM, close

EAGLE = VLM.parent / "eagle"
STATES = "last_hidden_state"
PROMPT, ALL = 24, 27
OPTIONS = {
    "NPUW_EAGLE": "YES",
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
    "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
}


class Model:
    """Target or draft, and OpenVINO's outputs for it."""

    def __init__(self, path: Path, goldens: dict[str, np.ndarray]) -> None:
        self.path = path
        self.goldens = goldens
        self._compiled: dict[str, Any] = {}

    def compiled(self, **options: Any) -> Any:
        key = repr(sorted(options.items()))
        if key not in self._compiled:
            config = SMALL | OPTIONS | options
            self._compiled[key] = Core().compile_model(self.path, "NPU", config)
        return self._compiled[key]

    def inputs(self, begin: int, end: int) -> dict[str, np.ndarray]:
        names = [name for name in ("input_ids", "hidden_states") if name in self.goldens]
        return {
            **{name: self.goldens[name][:, begin:end] for name in names},
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
        }

    def check(self, request: Any) -> None:
        """Compare a prompt, a step of several tokens, and a part of that step once more."""
        for begin, end, what in ((0, PROMPT, "prompt"), (PROMPT, ALL, "step")):
            found = request.infer(self.inputs(begin, end))
            assert close(found["logits"], self.goldens[f"{what}_logits"])
            assert close(found[STATES], self.goldens[f"{what}_states"])
        found = request.infer(self.inputs(ALL - 2, ALL))
        assert close(found[STATES], self.goldens["step_states"][:, 1:])
        assert close(request.get_tensor(STATES).data, found[STATES])


@pytest.fixture(scope="session")
def pair(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Model]:
    restore = load_module(VLM.parent / "restore.py").restore
    return {
        name: Model(
            restore(EAGLE, name, tmp_path_factory.mktemp(name)),
            dict(np.load(EAGLE / f"{name}.npz")),
        )
        for name in ("target", "draft")
    }


WAYS = {
    "chunks": {},
    "whole": {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "own heads": {"NPUW_LLM_SHARED_HEAD": "NO"},
    "tiles": {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_LLM_PREFILL_PYRAMID": "NO"},
    "blocks": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("target", "chunks"),
        *(("draft", way) for way in WAYS),
    ],
)
def test_target_and_draft_equal_openvino(pair, name: str, way: str) -> None:
    pair[name].check(pair[name].compiled(**WAYS[way]).create_infer_request())


def test_a_draft_is_exported_with_all_its_ports(pair, core, tmp_path) -> None:
    model = pair["draft"]
    model.compiled().export_model(tmp_path / "eagle.blob")
    weights = {"WEIGHTS_PATH": model.path.with_suffix(".bin")}
    imported = core.import_model(tmp_path / "eagle.blob", "NPU", weights)
    model.check(imported.create_infer_request())


def test_a_draft_requires_hidden_states_of_each_token(pair) -> None:
    request = pair["draft"].compiled().create_infer_request()
    given = pair["draft"].inputs(0, PROMPT)
    with pytest.raises(TensorError, match="input_ids has 24 tokens, but hidden_states has 23"):
        request.infer({**given, "hidden_states": given["hidden_states"][:, 1:]})
    del given["hidden_states"]
    with pytest.raises(TensorError, match="inputs are missing: hidden_states"):
        request.infer(given)


@pytest.mark.parametrize(
    ("option", "value"),
    [("NPUW_LLM_ENABLE_PREFIX_CACHING", "YES"), ("NPUW_LLM_ON_FULL", "TRUNCATE")],
)
def test_options_that_skip_tokens_are_rejected(option: str, value: str) -> None:
    outputs = [TokenOutput(STATES, 96)]
    check_all_computed(parse_options({}), outputs)
    with pytest.raises(ModelError, match=f"returns {STATES} for each token; {option}"):
        check_all_computed(parse_options({option: value}), outputs)


def test_batched_conversations_have_no_hidden_states(pair) -> None:
    with pytest.raises(ModelError, match=f"do not support the outputs {STATES}"):
        split(read_model(pair["target"].path), 1, 63, slots=2)
    with pytest.raises(ModelError, match="the model has hidden_states"):
        pair["draft"].compiled().create_batching()


def test_npuw_eagle_requires_the_output_of_hidden_states(llava) -> None:
    with pytest.raises(ModelError, match=f"NPUW_EAGLE = YES: the model has no output {STATES}"):
        llava.compiled(NPUW_EAGLE="YES", NPUW_LLM_MAX_PROMPT_LEN=64)
