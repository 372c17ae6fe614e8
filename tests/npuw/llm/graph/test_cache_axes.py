"""Models whose caches have the token axis elsewhere: ChatGLM's, the first Qwen's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.conftest import SMALL, Talk, Talks, caches_of
from tests.npuw.layouts import CHANNELS, CHATGLM, QWEN, Layout, axes_of, laid_out

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.pipeline import Options as CompilerOptions
from compiler_layer.pipeline import lower_graph
from npuw_layer import Core, Tensor
from npuw_layer.errors import ModelError, OptionError, StateError
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model

IDS = np.random.default_rng(6).integers(0, 97, 90).tolist()
TURNS = (IDS[:40], [1], [2], IDS[40:])

LAYOUTS = pytest.mark.parametrize(
    "layout", [CHATGLM, QWEN, CHANNELS], ids=["chatglm", "qwen", "channels"]
)


@pytest.fixture(scope="module")
def written(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Layout], Path]:
    """Return a function that writes the tiny model with another layout, once per layout."""
    paths: dict[Layout, Path] = {}

    def path_of(layout: Layout) -> Path:
        if layout not in paths:
            paths[layout] = laid_out(tiny, layout, tmp_path_factory.mktemp("laid_out"))
        return paths[layout]

    return path_of


def alike(found: Talk, expected: Talk) -> None:
    for ids in TURNS:
        logits, same = found.tell(ids), expected.tell(ids)
        assert np.abs(logits - same).max() <= 1e-5 * np.abs(same).max()


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("layout", "said"),
    [(CHATGLM, True), (CHATGLM, False), (QWEN, False), (CHANNELS, True)],
    ids=["chatglm_said", "chatglm_looked_up", "qwen_looked_up", "channels_said"],
)
def test_other_axes_give_the_same_logits(
    talks: Talks, written: Callable[[Layout], Path], layout: Layout, said: bool
) -> None:
    talk = talks(written(layout), **(axes_of(layout) if said else {}))
    alike(talk, talks())


def test_found_axes_are_shown_as_options(written: Callable[[Layout], Path]) -> None:
    compiled = Core().compile_model(written(CHATGLM), "NPU", SMALL)
    assert compiled.get_property("NPUW_LLM_SEQ_LEN_DIM") == 0
    assert compiled.get_property("NPUW_LLM_BATCH_DIM") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
        {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
        {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
        {"KV_CACHE_PRECISION": "u8"},
        {"NPUW_LLM_GENERATE_PYRAMID": "YES"},
        {"NPUW_LLM_BATCH_SLOTS": "1,2"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_axes_work_with_all_cache_layouts(
    talks: Talks, written: Callable[[Layout], Path], options: dict[str, str | int]
) -> None:
    alike(talks(written(CHATGLM), **options), talks(**options))


@pytest.mark.matrix
@pytest.mark.parametrize("layout", [CHATGLM, QWEN], ids=["chatglm", "qwen"])
def test_attention_reads_the_caches_without_transpositions(
    written: Callable[[Layout], Path], layout: Layout
) -> None:
    """The transpositions for the model and for attention cancel each other."""
    options = parse_options({**SMALL, **axes_of(layout)})
    (generate,) = plan(options).generate
    graph = stage_graph(read_model(written(layout)), generate, options)
    lower_graph(graph, CompilerOptions())
    attention = [op for op in graph.body.ops if isinstance(op, ScaledDotProductAttention)]
    assert attention
    assert all(isinstance(op.k.owner, Concat) for op in attention)
    assert all(isinstance(op.v.owner, Concat) for op in attention)


@pytest.mark.matrix
@LAYOUTS
def test_states_have_the_models_axes(
    talks: Talks, written: Callable[[Layout], Path], layout: Layout
) -> None:
    talk, usual = talks(written(layout)), talks()
    for one in (talk, usual):
        one.tell(IDS[:9])
    found, expected = caches_of(talk.request), caches_of(usual.request)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name].transpose(layout), atol=1e-5)

    other = talks(written(layout))
    for state in other.request.query_state():
        if state.name in found:
            state.state = Tensor(found[state.name])
    other.said = talk.said
    assert np.array_equal(other.tell([5]), talk.tell([5]))


def test_other_axes_are_rejected(talks: Talks, written: Callable[[Layout], Path]) -> None:
    state = talks(written(CHATGLM)).request.query_state()[0]
    with pytest.raises(StateError, match=r"is float32 \[tokens, 1, 2, 8\], not .* \[1, 2, 3, 8\]"):
        state.state = Tensor(np.zeros((1, 2, 3, 8), np.float32))


@pytest.mark.long
def test_saved_conversations_and_blobs_keep_the_axes(
    written: Callable[[Layout], Path], tmp_path: Path
) -> None:
    path = written(QWEN)
    compiled = Core().compile_model(path, "NPU", SMALL)
    talk = Talk(compiled.create_infer_request())
    talk.tell(IDS[:9])
    talk.request.save_state(tmp_path / "talk")
    compiled.export_model(tmp_path / "model.blob")
    options = {"WEIGHTS_PATH": str(path.with_suffix(".bin"))}
    imported = Core().import_model(tmp_path / "model.blob", "NPU", options)
    assert imported.get_property("NPUW_LLM_SEQ_LEN_DIM") == 1
    other = Talk(imported.create_infer_request())
    other.request.load_state(tmp_path / "talk")
    other.said = talk.said
    assert caches_of(other.request).keys() == caches_of(talk.request).keys()
    assert all(values.shape == (1, 9, 2, 8) for values in caches_of(other.request).values())
    assert np.array_equal(other.tell([5]), talk.tell([5]))


@pytest.mark.parametrize(
    ("layout", "options", "axes"),
    [
        (CHATGLM, {"NPUW_LLM_SEQ_LEN_DIM": 2}, (0, 1)),
        (QWEN, {"NPUW_LLM_SEQ_LEN_DIM": 0, "NPUW_LLM_BATCH_DIM": 1}, (1, 0)),
    ],
)
def test_the_error_for_wrong_axes_states_the_models_axes(
    written: Callable[[Layout], Path],
    layout: Layout,
    options: dict[str, int],
    axes: tuple[int, int],
) -> None:
    tokens, sequences = axes
    wanted = f"NPUW_LLM_SEQ_LEN_DIM = {tokens} and NPUW_LLM_BATCH_DIM = {sequences}, or leave"
    with pytest.raises(ModelError, match=wanted):
        Core().compile_model(written(layout), "NPU", options)


def test_contradicting_axes_are_rejected() -> None:
    with pytest.raises(OptionError, match="NPUW_LLM_BATCH_DIM: 2 equals NPUW_LLM_SEQ_LEN_DIM"):
        parse_options({"NPUW_LLM_BATCH_DIM": 2})
    with pytest.raises(OptionError, match="NPUW_LLM_SEQ_LEN_DIM"):
        parse_options({"NPUW_LLM_SEQ_LEN_DIM": 4})
    with pytest.raises(OptionError, match="Whisper's caches count tokens along axis 2"):
        parse_options({"NPUW_WHISPER": "YES", "NPUW_LLM_SEQ_LEN_DIM": 1})
