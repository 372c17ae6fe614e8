"""A tree and the tokens after its accepted path equal OpenVINO's CPU plugin without padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

from .conftest import EAGLE, STATES, Talk, Tree, distance

WAYS: dict[str, dict[str, Any]] = {
    "chunks": {},
    "whole": {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "generate in tiles": {"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"},
    "generate on the host": {
        "NPUW_LLM_GENERATE_ATTENTION_HINT": "DYNAMIC",
        "NPUW_DEVICES": "NPU,CPU",
    },
    "in blocks": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "on the interpreter": {"NPUW_DEVICES": "CPU"},
}


def check(talk: Talk, name: str) -> None:
    """Compare a prompt, a tree of ten candidates, a path of five, and three tokens after it."""
    goldens = dict(np.load(EAGLE / f"tree_{name}.npz"))
    tree = Tree(goldens["parents"].tolist())

    def tell(what: str, **given: Any) -> dict[str, np.ndarray]:
        hidden = goldens.get(f"{what}_hidden")
        return talk.tell(goldens[what][0], None if hidden is None else hidden[0], **given)

    tell("prompt")
    found = tell("tree", tree=tree, mask=goldens["mask"])
    assert distance(found["logits"], goldens["tree_logits"]) <= 1e-5
    assert distance(found[STATES], goldens["tree_states"]) <= 1e-5
    talk.accept(goldens["accepted"], of=len(tree.parents))
    found = tell("after")
    assert distance(found["logits"], goldens["after_logits"]) <= 1e-5
    assert distance(found[STATES], goldens["after_states"]) <= 1e-5


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "way"), [("draft", "chunks"), *(("target", way) for way in WAYS)])
def test_candidates_and_following_tokens_equal_openvino(begin, name, way) -> None:
    check(begin(name, **WAYS[way]), name)


def test_f16_scores_do_not_overflow(begin) -> None:
    """Minus infinity, added to the lowest f16, would be NaN."""
    goldens = dict(np.load(EAGLE / "tree_target.npz"))
    talk = begin(INFERENCE_PRECISION_HINT="f16")
    talk.tell(goldens["prompt"][0])
    found = talk.tell(goldens["tree"][0], tree=Tree(goldens["parents"].tolist()))
    assert distance(found["logits"], goldens["tree_logits"]) <= 1e-2


def test_an_exported_model_keeps_its_trees(compiled, restored, tmp_path) -> None:
    compiled("draft").export_model(tmp_path / "draft.blob")
    weights = {"WEIGHTS_PATH": restored(EAGLE, "tree_draft").with_suffix(".bin")}
    imported = Core().import_model(tmp_path / "draft.blob", "NPU", weights)
    check(Talk(imported.create_infer_request()), "draft")
