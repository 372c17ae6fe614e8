"""PagedAttentionExtension: its semantics, reading and writing it, and refused variants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.errors import UnsupportedOps
from compiler_layer.frontends.openvino_ir.read import read_ir
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir.write import write_ir

ABSENT = np.empty(0, np.float32)
ROWS = 4
"""Rows of a block."""


def attention(
    widths: tuple[int, int, int],
    scale: float | None = None,
    window: int = 0,
    alibi: np.ndarray = ABSENT,
    others: tuple[np.ndarray, ...] = (),
    write: bool = True,
) -> Model:
    """Return a model of one attention; widths are those of q, k and v."""
    names = ("q", "k", "v", "key_cache.0", "value_cache.0", "past_lens", "subsequence_begins")
    kinds = [
        *(tensor("f32", (-1, width)) for width in widths),
        *[tensor("f32", (-1,) * 4)] * 2,
        *[tensor("i32", (-1,))] * 4,
    ]
    every = (*names, "block_indices", "block_indices_begins")
    model, arguments = Model.build(list(zip(every, kinds, strict=True)))
    scales = ABSENT if scale is None else np.float32(scale)
    constants = [
        Constant.inline(np.asarray(each))
        for each in (scales, np.int32(window), alibi, np.int32(0), *others)
    ]
    op = PagedAttentionExtension.make(
        [
            *arguments,
            *(each.output for each in constants[:4]),
            [each.output for each in constants[4:]],
        ],
        write_kv_cache=bool_attr(write),
    )
    for each in (*constants, op):
        model.body.insert_op_before(each, model.terminator)
    model.set_outputs([("y", op.y)])
    return model


def one_sequence(tokens: int, past: int, blocks: list[int]) -> dict[str, np.ndarray]:
    """Return the tables of a single sequence."""
    tables = {
        "past_lens": [past],
        "subsequence_begins": [0, tokens],
        "block_indices": blocks,
        "block_indices_begins": [0, len(blocks)],
    }
    return {name: np.array(values, np.int32) for name, values in tables.items()}


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_each_token_attends_to_the_rows_up_to_its_own(data: st.DataObject) -> None:
    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    shared, group, width, value_width = number(1, 2), number(1, 3), number(1, 4), number(1, 4)
    past, tokens, window = number(0, 6), number(1, 6), number(0, 5)
    scale = data.draw(st.sampled_from([None, 0.3]))
    slopes = np.linspace(0.1, 0.5, shared * group, dtype=np.float32)
    alibi = slopes if data.draw(st.booleans()) else ABSENT
    needed = -(-(past + tokens) // ROWS)
    blocks = data.draw(st.permutations(range(needed + 1)))[:needed]
    draw = np.random.default_rng(number(0, 99))
    rows = past + tokens
    keys, values = (
        draw.standard_normal((rows, shared, each)).astype(np.float32)
        for each in (width, value_width)
    )
    q = draw.standard_normal((tokens, shared * group, width)).astype(np.float32)
    caches = {
        "key_cache.0": np.full((needed + 1, shared, ROWS, width), np.nan, np.float32),
        "value_cache.0": np.full((needed + 1, shared, ROWS, value_width), np.nan, np.float32),
    }
    for row in range(past):
        for cache, own in zip(caches.values(), (keys, values), strict=True):
            cache[blocks[row // ROWS], :, row % ROWS] = own[row]
    widths = (shared * group * width, shared * width, shared * value_width)
    found = (
        Interpreter(attention(widths, scale, window, alibi))
        .run(
            {
                "q": q.reshape(tokens, -1),
                "k": keys[past:].reshape(tokens, -1),
                "v": values[past:].reshape(tokens, -1),
                **caches,
                **one_sequence(tokens, past, blocks),
            }
        )["y"]
        .reshape(tokens, shared * group, value_width)
    )
    for token in range(tokens):
        last = past + token
        first = max(0, last + 1 - window) if window else 0
        for head in range(shared * group):
            scores = keys[first : last + 1, head // group] @ q[token, head]
            scores = scores * (width**-0.5 if scale is None else scale)
            if alibi.size:
                scores -= slopes[head] * (last - np.arange(first, last + 1))
            weights = np.exp(scores)
            wanted = weights @ values[first : last + 1, head // group] / weights.sum()
            np.testing.assert_allclose(found[token, head], wanted, rtol=1e-4, atol=1e-5)
    for row in range(rows):
        for cache, own in zip(caches.values(), (keys, values), strict=True):
            np.testing.assert_array_equal(cache[blocks[row // ROWS], :, row % ROWS], own[row])


@pytest.mark.parametrize("write", [True, False])
def test_caches_are_written_in_place_if_enabled(write: bool) -> None:
    caches = {f"{name}_cache.0": np.ones((1, 1, ROWS, 2), np.float32) for name in ("key", "value")}
    rows = {name: np.full((1, 2), 7, np.float32) for name in "qkv"}
    feeds = {**rows, **caches, **one_sequence(1, 2, [0])}
    found = Interpreter(attention((2, 2, 2), write=write)).run(feeds)["y"]
    assert [*caches["key_cache.0"][0, 0, :, 0]] == [1, 1, 7 if write else 1, 1]
    assert found[0, 0] == (pytest.approx(7) if write else 1)


REFUSED: dict[str, Any] = {
    "rotated blocks of K": {"others": (ABSENT, np.zeros(1, np.int32))},
    "xattention": {"others": (*[ABSENT] * 4, np.ones(1, np.float32))},
    "with sinks": {"others": (*[ABSENT] * 7, np.ones((1, 1, 1, 1), np.float32))},
    "adaptive R-KV": {"others": (*[ABSENT] * 9, np.ones(1, np.int32))},
    "token types": {"others": (*[ABSENT] * 12, np.ones(1, np.int32))},
    "query-to-query bias": {"others": (*[ABSENT] * 13, np.ones(1, np.uint8))},
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_unsupported_option_is_refused_by_name(what: str) -> None:
    feeds = {name: np.ones((1, 2), np.float32) for name in "qkv"}
    caches = {f"{name}_cache.0": np.ones((1, 1, ROWS, 2), np.float32) for name in ("key", "value")}
    model = attention((2, 2, 2), **REFUSED[what])
    with pytest.raises(ValueError, match=what):
        Interpreter(model).run({**feeds, **caches, **one_sequence(1, 0, [0])})


def test_scores_that_the_graph_uses_are_refused() -> None:
    model = attention((2, 2, 2))
    (op,) = (op for op in model.body.ops if isinstance(op, PagedAttentionExtension))
    model.set_outputs([("y", op.y), ("scores", op.scores)])
    assert op.refusal() == "with score outputs"


@pytest.mark.parametrize(
    ("widths", "cache"),
    [((4, 3, 3), "f32"), ((4, 0, 2), "f32"), ((4, 2, 2), "bf16"), ((4, 2, 2), "u8")],
)
def test_operands_that_do_not_fit_are_refused(widths: tuple[int, int, int], cache: str) -> None:
    op = next(op for op in attention((4, 2, 2)).body.ops if isinstance(op, PagedAttentionExtension))
    arguments = [tensor("f32", (-1, width)) for width in widths]
    arguments += [tensor(cache, (-1,) * 4)] * 2
    _, values = Model.build([(str(n), each) for n, each in enumerate(arguments)])
    with pytest.raises(ValueError, match=r"channels do not form heads|the cache is"):
        PagedAttentionExtension.make(
            [*values, *op.operands[5:13], []], write_kv_cache=bool_attr(True)
        )


@pytest.fixture(scope="module")
def path(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Llama with paged attention, as OpenVINO writes it."""
    restore = load_module(GOLDENS / "paged" / "restore.py").restore
    return restore("llama_fp16", tmp_path_factory.mktemp("paged"))


def test_caches_without_a_type_are_read_as_f32(path: Path) -> None:
    caches = [port for port in read_ir(path).inputs if "cache" in port.name]
    assert [(element_of(port.value), shape_of(port.value)) for port in caches] == [
        ("f32", (-1,) * 4)
    ] * 4


def test_other_inputs_without_a_type_are_refused(path: Path, tmp_path: Path) -> None:
    broken = tmp_path / "openvino_model.xml"
    text = path.read_text()
    before, after = text.split('name="past_lens"', 1)
    broken.write_text(before + 'name="past_lens"' + after.replace('"i32"', '"dynamic"', 1))
    with pytest.raises(UnsupportedOps, match="of dynamic"):
        read_ir(broken)


def test_a_written_model_is_read_back(path: Path, tmp_path: Path) -> None:
    model = read_ir(path)
    written = tmp_path / "openvino_model.xml"
    write_ir(model, written)
    again = read_ir(written)
    kinds = [[op.name for op in each.body.ops] for each in (model, again)]
    assert kinds[0] == kinds[1]
    assert kinds[0].count("ov.PagedAttentionExtension") == 2
