"""Tokens generated with adapters equal those of the real openvino_genai."""

from __future__ import annotations

import pytest
from tests.conftest import GOLDENS
from tests.npuw.traits.lora.conftest import greedy, wear


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "device"),
    [("llama_fp16", "NPU"), ("llama_fp16", "CPU"), ("llama_int4", "NPU"), ("gemma2_fp16", "NPU")],
)
def test_tokens_equal_openvino_genais_for_each_adapter(
    talks, adapt, load_module, said_by_genai, name, device
) -> None:
    """No adapter, ranks 1, 8 and 32, two together: set one after the other on one request."""
    tools, golden = load_module(GOLDENS / "adapters.py"), said_by_genai[name]
    for kind in ("f32", "f16"):
        model = adapt(name, kind=kind)
        talk = talks(model.path, NPUW_DEVICES=device)
        for wished, wish in tools.WISHES.items():
            if wish.kind == kind:
                talk.reset()
                wear(talk, wish.states(model.adapted))
                expected = golden["tokens"][wished]
                assert greedy(talk, golden["prompt"], len(expected)) == expected, wished


def test_tokens_differ_by_adapter(said_by_genai) -> None:
    """The test above could otherwise pass without adapters."""
    for golden in said_by_genai.values():
        assert len({tuple(tokens) for tokens in golden["tokens"].values()}) == 6


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llama_fp16", "llama_int8", "llama_int4"])
def test_at_f16_adapters_change_logits_as_in_f32(talks, adapt, name) -> None:
    """The DPU computes in f16, with base weights of 16, 8 and 4 bits."""
    model = adapt(name)
    exact, half = talks(model.path), talks(model.path, INFERENCE_PRECISION_HINT="f16")
    for rank in (1, 32):
        adapter = model.draw(rank, seed=rank)
        for talk in (exact, half):
            talk.reset()
            wear(talk, adapter)
        for ids in (list(range(20, 60)), [7], [8]):
            expected, found = exact.tell(ids), half.tell(ids)
            assert abs(found - expected).max() <= 1e-2 * abs(expected).max()


@pytest.mark.long
def test_folded_layers_have_separate_adapters(talks, adapt) -> None:
    """The compiler sees two of five layers; each layer has its own adapters."""
    model = adapt("llama_deep_fp16")
    adapter = model.draw(8, seed=3)
    folded, whole = talks(model.path), talks(model.path, NPUW_FOLD="NO")
    for talk in (folded, whole):
        wear(talk, adapter)
    ids = list(range(30, 70))
    found, expected = folded.tell(ids), whole.tell(ids)
    assert abs(found - expected).max() <= 1e-5 * abs(expected).max()
    assert folded.tell([5]).argmax() == whole.tell([5]).argmax()


@pytest.mark.matrix
@pytest.mark.parametrize("options", [{}, {"NPUW_LLM_SHARED_HEAD": "NO"}], ids=["cut", "kept"])
def test_a_head_can_be_adapted(talks, adapt, options) -> None:
    """The head's adapter is in the head's model; B Aᵀ of 0 has no effect."""
    model = adapt("llama_fp16", r"mlp|lm_head")
    head, ids = model.product("lm_head"), list(range(30, 70))
    talk, plain = talks(model.path, **options), talks(model.path, **options)
    adapter = model.draw(4, seed=1)
    wear(plain, {name: values for name, values in adapter.items() if not name.startswith(head)})
    without = plain.tell(ids).copy()
    found = wear(talk, adapter).tell(ids)
    assert abs(found - without).max() > 1e-2 * abs(without).max()
    plain.reset()
    wear(plain, adapter)
    assert (plain.tell(ids) == found).all()
