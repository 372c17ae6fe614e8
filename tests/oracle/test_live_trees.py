"""Token trees compared to the real NPUW and to OpenVINO's CPU plugin, live.

The CPU plugin runs only prompts and accepted paths, without padding. The real NPUW runs trees and
receives the accepted paths. It does not move rows of 32 bits, so later tokens attend to the first
candidates. If that test fails with a newer ``openvino``, the defect is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openvino import opset13 as ops
from tests.npuw.traits.trees.conftest import EAGLE, OPTIONS, STATES, Talk, Tree, distance, result
from tests.npuw.traits.trees.test_paths import MOST, Round, rounds
from tests.oracle.real_npuw import EXACT, EXACTLY, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

WIDTH = 96
WHOLE = {"NPUW_LLM_PREFILL_HINT": "STATIC"}
WAYS: dict[str, dict[str, Any]] = {"whole": WHOLE, "chunks": {}}
OF_16_BITS = {"KV_CACHE_PRECISION": "f16"}


class Real:
    """Request of the real OpenVINO that returns the outputs of new tokens, by name."""

    def __init__(self, compiled: Any) -> None:
        self._request = compiled.create_infer_request()
        self._names = {name for port in compiled.inputs for name in port.get_names()}
        self.query_state = self._request.query_state

    def infer(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {**inputs, "beam_idx": np.zeros(1, np.int32)}
        for name, values in given.items():
            if name in self._names:
                self._request.set_tensor(name, ov.Tensor(np.ascontiguousarray(values)))
        self._request.infer()
        count = inputs["input_ids"].shape[1]
        names = ("logits", STATES)
        return {name: self._request.get_tensor(name).data[:, -count:].copy() for name in names}


class RealTalk(Talk):
    """Conversation that reports accepted candidates in the form of OpenVINO."""

    def accept(self, path: Sequence[int] | np.ndarray, of: int) -> None:
        self.sampling.state = ov.Tensor(result(path, of))
        self.said -= of - len(path)


@pytest.fixture(scope="module")
def real(restored: Callable[[Path, str], Path]) -> Callable[..., RealTalk]:
    """Return a function that begins a conversation in the real OpenVINO."""
    known: dict[str, Any] = {}

    def begin(name: str, device: str, **options: Any) -> RealTalk:
        config = EXACT if device == "CPU" else ON_CPU | EXACTLY | OPTIONS
        key = repr((name, device, sorted(options.items())))
        if key not in known:
            core = ov.Core()
            model = core.read_model(restored(EAGLE, f"tree_{name}"))
            for port in model.get_results():
                if STATES in port.output(0).get_names():
                    # Marked as in openvino_genai, as otherwise NPUW takes the states for logits.
                    port.get_rt_info()["manually_added_output"] = True
            known[key] = core.compile_model(model, device, config | options)
        return RealTalk(Real(known[key]))

    return begin


@pytest.fixture(scope="module")
def begin(restored: Callable[[Path, str], Path]) -> Callable[..., Talk]:
    known: dict[str, Any] = {}

    def start(name: str, **options: Any) -> Talk:
        key = repr((name, sorted(options.items())))
        if key not in known:
            path = restored(EAGLE, f"tree_{name}")
            known[key] = Core().compile_model(path, "NPU", OPTIONS | options)
        return Talk(known[key].create_infer_request())

    return start


TREE = Tree([-1, 0, 0, 1, 1, 2, 3, 4, 6, 6])
PATH = [0, 1, 3, 6, 9]


def drawn(name: str, seed: int = 3) -> Callable[[int], tuple[np.ndarray, np.ndarray | None]]:
    """Return a function that draws new tokens, and a draft's hidden states."""
    draw = np.random.default_rng(seed)

    def tokens(count: int) -> tuple[np.ndarray, np.ndarray | None]:
        hidden = draw.standard_normal((count, WIDTH)).astype(np.float32)
        return draw.integers(10, 1000, count), hidden if name == "draft" else None

    return tokens


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["target", "draft"])
def test_outputs_of_candidates_equal_the_real_npuws(begin, real, name: str, way: str) -> None:
    talks, tokens = (begin(name, **WAYS[way]), real(name, "NPU", **WAYS[way])), drawn(name)
    prompt, tree = tokens(40), tokens(10)
    for talk in talks:
        talk.tell(*prompt)
    for mask in (TREE.mask(40), TREE.mask()):  # the complete mask, and the candidates' part
        found, expected = (talk.tell(*tree, tree=TREE, mask=mask) for talk in talks)
        for output in ("logits", STATES):
            assert distance(found[output], expected[output]) <= 1e-5
        for talk in talks:
            talk.said -= 10


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["target", "draft"])
def test_outputs_after_accepted_paths_equal_npuws(begin, real, name: str, way: str) -> None:
    """NPUW's rows have 16 bits, this stack's 32."""
    talks = begin(name, **WAYS[way]), real(name, "NPU", **WAYS[way], **OF_16_BITS)
    tokens = drawn(name)
    prompt = tokens(40)
    for talk in talks:
        talk.tell(*prompt)
    for node in (9, 2, 0, 7):
        tree, path = tokens(10), TREE.path(node)
        found, expected = (talk.tell(*tree, tree=TREE) for talk in talks)
        for output in ("logits", STATES):
            assert distance(found[output], expected[output]) <= 1e-3
        for talk in talks:
            talk.accept(path, of=10)
    last = tokens(1)
    found, expected = (talk.tell(*last) for talk in talks)
    assert distance(found["logits"], expected["logits"]) <= 1e-3


def test_rows_of_32_bits_are_moved_here_and_not_in_npuw(begin, real) -> None:
    tokens, plain = drawn("target"), real("target", "CPU")
    talks = begin("target"), real("target", "NPU")
    prompt, tree, after = tokens(40), tokens(10), tokens(3)
    for talk in (*talks, plain):
        talk.tell(*prompt)
    for talk in talks:
        talk.tell(*tree, tree=TREE)
        talk.accept(PATH, of=10)
    plain.tell(tree[0][PATH])
    found, other, expected = (talk.tell(*after)["logits"] for talk in (*talks, plain))
    assert distance(found, expected) <= 1e-5
    assert distance(other, expected) > 1e-2
    plain = real("target", "CPU")
    plain.tell(*prompt)
    plain.tell(tree[0][:5], tree=Tree(TREE.parents[:5]))
    assert distance(other, plain.tell(*after)["logits"]) <= 1e-5, "after the first candidates"


LYING: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "transposed": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "in blocks": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "in tiles": {"NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"},
}


@pytest.mark.parametrize(
    ("name", "way"), [("draft", "contiguous"), *(("target", way) for way in LYING)]
)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(1, 64), st.lists(rounds(), min_size=1, max_size=6), st.integers(0, 1 << 32))
def test_any_path_of_any_tree_equals_a_plain_conversation_on_the_cpu(
    begin, real, name: str, way: str, prompt: int, told: list[Round], seed: int
) -> None:
    talk, plain, tokens = begin(name, **LYING[way]), real(name, "CPU"), drawn(name, seed)
    first = tokens(prompt)
    for one in (talk, plain):
        one.tell(*first)
    for one in told:
        tree, (ids, hidden) = Tree(one.parents), tokens(len(one.parents))
        path = tree.path(one.node)
        if talk.said + MOST > 128 - MOST:
            break
        found = talk.tell(ids, hidden, tree=tree)
        expected = plain.tell(ids[path], None if hidden is None else hidden[path])
        for output in ("logits", STATES):
            assert distance(found[output][:, path], expected[output]) <= 1e-5
        talk.accept(path, of=len(ids))


def with_16_bits(path: Path) -> ov.Model:
    """Return the model with an f16 mask, as openvino_genai creates it for masks of that type."""
    model = ov.Core().read_model(path)
    (old,) = (port for port in model.get_parameters() if "eagle_tree_mask" in port.output(0).names)
    new = ops.parameter(old.get_partial_shape(), np.float16, "eagle_tree_mask")
    new.output(0).set_names({"eagle_tree_mask"})
    wide = ops.convert(new, "f32")
    for reader in old.output(0).get_target_inputs():
        reader.replace_source_output(wide.output(0))
    model.replace_parameter(model.get_parameter_index(old), new)
    return model


def test_sixty_candidates_with_a_mask_of_16_bits(restored, tmp_path) -> None:
    model, path = with_16_bits(restored(EAGLE, "tree_target")), tmp_path / "openvino_model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    options = OPTIONS | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 60}
    compiled = ov.Core().compile_model(model, "CPU", EXACT)
    looking, accepting = RealTalk(Real(compiled)), RealTalk(Real(compiled))
    talk = Talk(Core().compile_model(path, "NPU", options).create_infer_request())
    draw = np.random.default_rng(5)
    ids = draw.integers(10, 1000, 60)
    tree = Tree([-1, *(int(draw.integers(node)) for node in range(1, 60))])
    none, mask = np.zeros((1, 1, 1, 1), np.float16), tree.mask(30).astype(np.float16)
    for one in (talk, looking, accepting):
        one.tell(range(20, 50), mask=none)
    found, expected = (one.tell(ids, tree=tree, mask=mask) for one in (talk, looking))
    for output in ("logits", STATES):
        assert distance(found[output], expected[output]) <= 1e-5
    talk.accept(tree.path(59), of=60)
    accepting.tell(ids[tree.path(59)], mask=none)
    found, expected = (one.tell([7], mask=none) for one in (talk, accepting))
    assert distance(found["logits"], expected["logits"]) <= 1e-5
