"""Assignment of adapters to matmuls, and blending of several adapters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS

from genai_layer import Adapter, AdapterError
from genai_layer.lora.adapter import Pair, blend, joined, place

PRODUCTS = {
    f"__module.model.layers.{n}.{part}/aten::linear/MatMul": (3, 4)
    for n in (0, 1, 10, 11)
    for part in ("self_attn.q_proj", "mlp.up_proj")
} | {"__module.lm_head/aten::linear/MatMul": (3, 5)}


@pytest.fixture
def make(load_module, tmp_path):
    files = load_module(GOLDENS / "adapter_files.py")

    def adapter(layers, rank=2, inputs=3, outputs=4) -> Adapter:
        pairs = files.draw({layer: (inputs, outputs) for layer in layers}, rank, rank)
        return Adapter(files.write_tensors(tmp_path / "mine.safetensors", files.peft(pairs)))

    return adapter


@pytest.mark.parametrize("dot", [".", "_"])
def test_a_layer_name_is_part_of_its_matmuls_name(make, dot) -> None:
    layers = [f"model.layers.{n}.mlp.up_proj" for n in (0, 1, 11)]
    found = place(make([layer.replace(".", dot) for layer in layers]), PRODUCTS)
    assert list(found) == [f"__module.{layer}/aten::linear/MatMul" for layer in layers]


def test_a_short_name_matches_all_layers(make) -> None:
    assert len(place(make(["q_proj"]), PRODUCTS)) == 4


@pytest.mark.parametrize(
    ("layers", "widths", "why"),
    [
        (["model.layers.2.mlp.up_proj"], (3, 4), "model has no adaptable layer 'model.layers.2"),
        (["x1", "x2", "q_proj"], (3, 4), r"layer 'x1' \(nor 1 more\); is the adapter for this"),
        (["lm_head"], (3, 4), r"A \[2, 3\] and B \[4, 2\], but .* has 3 inputs and 5 outputs"),
        (["q_proj"], (4, 4), r"A \[2, 4\] and B \[4, 2\], but .* has 3 inputs and 4 outputs"),
    ],
)
def test_an_adapter_of_another_model_is_rejected_with_file_and_layer(
    make, layers, widths, why
) -> None:
    with pytest.raises(AdapterError, match=rf"mine\.safetensors: .*{why}"):
        place(make(layers, 2, *widths), PRODUCTS)


def test_names_without_the_prefix_of_peft_are_rejected(load_module, tmp_path) -> None:
    write = load_module(GOLDENS / "adapter_files.py").write_tensors
    tensors = {"q_proj.lora_A.weight": np.ones((1, 3)), "q_proj.lora_B.weight": np.ones((4, 1))}
    path = tmp_path / "mine.safetensors"
    write(path, {name: values.astype(np.float32) for name, values in tensors.items()})
    with pytest.raises(
        AdapterError, match=r"mine.*'q_proj' does not begin with 'base_model\.model\.'"
    ):
        place(Adapter(path), PRODUCTS)


def test_only_adapted_matmuls_are_blended(make) -> None:
    one, two = make(["q_proj"], 2), make(["model.layers.0"], 3)
    added = blend([(one, 1.0), (two, 0.5), (Adapter(), 1.0)], PRODUCTS)
    ranks = {name: each.alpha.tolist()[0] for name, each in added.items()}
    both, first, second = (1.0, 1.0, 0.5, 0.5, 0.5), (1.0, 1.0), (0.5, 0.5, 0.5)
    layer = "__module.model.layers.{}/aten::linear/MatMul"
    assert ranks == {
        layer.format("0.self_attn.q_proj"): [*both],
        layer.format("0.mlp.up_proj"): [*second],
        **{layer.format(f"{n}.self_attn.q_proj"): [*first] for n in (1, 10, 11)},
    }


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.floats(-3, 3, width=32), st.sampled_from("fe")),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 1000),
)
def test_a_blend_equals_the_sum_of_its_adapters(several, seed) -> None:
    """The blend's x Aᵀ · alpha Bᵀ is the sum over adapters of alpha · x (B A)ᵀ."""
    draw = np.random.default_rng(seed)
    parts = [
        (Pair(*(draw.standard_normal(s).astype(kind) for s in ((rank, 7), (5, rank)))), alpha)
        for rank, alpha, kind in several
    ]
    x = draw.standard_normal((3, 7))
    both = joined(parts)
    found = (x @ both.a.T * both.alpha) @ both.b.T
    expected = sum(
        alpha * (x @ pair.a.T.astype("d")) @ pair.b.T.astype("d") for pair, alpha in parts
    )
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert both.alpha.shape == (1, sum(rank for rank, _, _ in several))
    wide = any(kind == "f" for _, _, kind in several)
    assert both.a.dtype == both.b.dtype == np.dtype("f" if wide else "e")
