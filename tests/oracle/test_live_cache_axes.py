"""Models with other cache axes, compared to the real OpenVINO and to the real NPUW."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from tests.npuw.layouts import CHATGLM, QWEN, Layout, axes_of, laid_out
from tests.oracle.both import CHUNKED, LENGTHS, Both, Chat, distance, ours
from tests.oracle.real_npuw import EXACT

pytestmark = pytest.mark.oracle

LAYOUTS = pytest.mark.parametrize("layout", [CHATGLM, QWEN], ids=["chatglm", "qwen"])


@LAYOUTS
def test_tokens_equal_those_of_the_real_npuw(demo_ir: Path, layout: Layout, tmp_path: Path) -> None:
    both = Both(laid_out(demo_ir, layout, tmp_path), LENGTHS | axes_of(layout))
    for seed, count in enumerate((60, 3, 128)):
        both.reset()
        both.check_answer(both.draw(seed, count), 12)


@LAYOUTS
def test_logits_and_states_equal_openvinos(demo_ir: Path, layout: Layout, tmp_path: Path) -> None:
    path = laid_out(demo_ir, layout, tmp_path)
    theirs = ov.Core().compile_model(path, "CPU", EXACT)
    chats = [Chat(theirs), Chat(ours(path, CHUNKED))]
    draw = np.random.default_rng(3)
    for count in (100, 1, 1, 1):
        ids = draw.integers(0, 97, count)
        expected, found = (chat.tell(ids) for chat in chats)
        assert distance(found, expected) <= 1e-4
    states = [{one.name: one.state.data for one in chat.request.query_state()} for chat in chats]
    for name, values in states[0].items():
        assert states[1][name].shape == values.shape
        assert distance(states[1][name], values) <= 1e-4
