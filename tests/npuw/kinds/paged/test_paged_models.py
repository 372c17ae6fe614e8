"""Models whose K and V are stored in pages of the caller's memory (NPUW_PA)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import ModelError, OptionError, TensorError
from npuw_layer.execution.partition.container import read_container
from npuw_layer.kinds.paged.lengths import variant_sizes
from npuw_layer.kinds.paged.names import TAG

DEVICES = ("CPU", "NPU", "OPENVINO_CPU")


def follow(paged: Any, compiled: Any, within: float) -> None:
    """Run sequences step by step; compare the logits of their last tokens."""
    caches = paged.caches(compiled)
    request, asked = compiled.create_infer_request(), paged.sequences.Sequences()
    for number, step in enumerate(paged.sequences.STEPS):
        logits = request.infer({**asked.inputs(step), **caches})["logits"]
        assert len(logits) == sum(count for _, count in step)
        found = logits[paged.sequences.last_tokens(step)]
        np.testing.assert_allclose(found, paged.said[f"logits_{number}"], atol=within)


@pytest.mark.matrix
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("name", ["llama_fp16", "gemma2_fp16"])
def test_logits_equal_openvinos(paged: Callable[[str], Any], name: str, devices: str) -> None:
    model = paged(name)
    follow(model, model.compile(NPUW_DEVICES=devices), 1e-5)


@pytest.mark.long
def test_caches_have_the_type_of_activations(llama: Any) -> None:
    compiled = llama.compile(NPUW_DEVICES="NPU", INFERENCE_PRECISION_HINT="f16")
    assert compiled.input("key_cache.0").element_type == "f16"
    follow(llama, compiled, 5e-3)


def test_ports_are_those_of_the_dynamic_model(compiled: Any) -> None:
    shapes = {port.any_name: port.get_partial_shape() for port in compiled.inputs}
    assert shapes["input_ids"] == shapes["block_indices"] == (-1,)
    assert shapes["max_context_len"] == ()
    assert shapes["value_cache.1"] == (-1, 2, 32, 16)
    assert compiled.output().get_partial_shape() == (-1, 1, 1024)


def test_the_host_computes_only_attention(llama: Any) -> None:
    variants = llama.compile(NPUW_DEVICES="NPU")._compiled.variants
    assert sorted(variants) == [1, 8, 16]
    parts = read_container(variants[8].programs.program)
    tags = [parts.functions[call.function].tag for call in parts.calls]
    assert tags == ["", TAG, "", TAG, ""]
    assert [one.tag for one in parts.functions].count(TAG) == 1  # all layers share it


def test_variants_share_their_weights(llama: Any) -> None:
    variants = llama.compile(NPUW_DEVICES="NPU")._compiled.variants.values()
    assert len({id(each.bank) for each in variants}) == 1


@pytest.mark.parametrize(
    ("tokens", "ran"),
    [
        (1, "1 of 1"),
        (2, "2 of 8"),
        (9, "9 of 16"),
        (17, "16 of 16, 1 of 1"),
        (38, "16 of 16, 16 of 16, 6 of 8"),
    ],
)
def test_the_smallest_sufficient_variant_runs(
    llama: Any, compiled: Any, tokens: int, ran: str
) -> None:
    request, asked = compiled.create_infer_request(), llama.sequences.Sequences()
    request.infer({**asked.inputs([(0, tokens)]), **llama.caches(compiled)})
    assert request.execution_report()["tokens"] == ran


def test_unused_rows_are_neither_read_nor_written(llama: Any, compiled: Any) -> None:
    caches = llama.caches(compiled)
    for values in caches.values():
        values[...] = np.nan
    asked = llama.sequences.Sequences()
    step = [(0, 35), (1, 5)]
    logits = compiled.create_infer_request().infer({**asked.inputs(step), **caches})["logits"]
    assert np.isfinite(logits).all()
    written = np.zeros(caches["key_cache.0"].shape[::2][:2], bool)
    for number, count in step:
        for row in range(count):
            written[llama.sequences.TABLES[number][row // 32], row % 32] = True
    for values in caches.values():
        np.testing.assert_array_equal(np.isfinite(values).all((1, 3)), written)
        np.testing.assert_array_equal(np.isnan(values).all((1, 3)), ~written)


def test_caches_are_written_in_place_by_infer_and_start_async(llama: Any, compiled: Any) -> None:
    """Other inputs are copied when the inference starts; caches are never copied."""
    waited, started = llama.caches(compiled), llama.caches(compiled)
    one, other = compiled.create_infer_request(), compiled.create_infer_request()
    inputs = llama.sequences.Sequences().inputs([(0, 9)])
    expected = one.infer({**inputs, **waited})["logits"]
    other.start_async({**inputs, **started})
    inputs["input_ids"][...] = 0
    other.wait()
    np.testing.assert_array_equal(other.results["logits"], expected)
    for name, values in waited.items():
        assert values.any()
        np.testing.assert_array_equal(started[name], values)


def test_caches_may_be_remote_tensors(llama: Any, compiled: Any) -> None:
    context = compiled.get_context()
    remote = {
        name: context.create_host_tensor(values.dtype, values.shape)
        for name, values in llama.caches(compiled).items()
    }
    plain = llama.caches(compiled)
    ones = [compiled.create_infer_request() for _ in (remote, plain)]
    for one, caches in zip(ones, (remote, plain), strict=True):
        for name, values in caches.items():
            one.set_tensor(name, values)
        asked = llama.sequences.Sequences()
        for step in ([(0, 5)], [(0, 1)]):
            one.infer(asked.inputs(step))
    found, wanted = (one.get_tensor("logits").data for one in ones)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(remote["key_cache.1"].data, plain["key_cache.1"])


def test_an_inference_without_tokens_returns_no_logits(llama: Any, compiled: Any) -> None:
    nothing = {
        name: values if name.endswith("begins") else values[:0]
        for name, values in llama.sequences.Sequences().inputs([(0, 1)]).items()
        if name != "max_context_len"
    }
    nothing |= {name: values[:1] for name, values in nothing.items() if name.endswith("begins")}
    found = compiled.create_infer_request().infer({**nothing, **llama.caches(compiled)})
    assert found["logits"].shape == (0, 1, 1024)


def test_a_second_start_loads_all_from_the_cache(llama: Any, tmp_path: Path) -> None:
    first, second = (llama.compile(NPUW_DEVICES="NPU", CACHE_DIR=str(tmp_path)) for _ in "12")
    assert not first.get_property("LOADED_FROM_CACHE")
    assert second.get_property("LOADED_FROM_CACHE")
    follow(llama, second, 1e-5)


WRONG_TABLES = [
    ("subsequence_begins", [0, 4], "ascend from 0 to 5"),
    ("subsequence_begins", [0, 2, 5], "need 2 subsequence_begins"),
    ("subsequence_begins", [], "need 2 subsequence_begins"),
    ("block_indices", [9], "caches have 9"),
    ("block_indices", [-1], "caches have 9"),
    ("block_indices", [], "ascend from 0 to 0"),
    ("block_indices_begins", [1, 1], "ascend from 0 to 1"),
    ("past_lens", [30], "30 stored and 5 new rows do not fit 1 blocks of 32"),
    ("past_lens", [-1], "-1 stored"),
    ("past_lens", [2**31 - 1], "new rows do not fit 1 blocks"),
]


@pytest.mark.parametrize(("name", "values", "message"), WRONG_TABLES)
def test_wrong_tables_are_rejected(
    llama: Any, compiled: Any, name: str, values: list[int], message: str
) -> None:
    inputs = llama.sequences.Sequences().inputs([(0, 5)]) | {name: np.array(values, np.int32)}
    with pytest.raises(TensorError, match=message):
        compiled.create_infer_request().infer({**inputs, **llama.caches(compiled)})


def test_inputs_that_do_not_fit_are_rejected(llama: Any, compiled: Any) -> None:
    request = compiled.create_infer_request()
    inputs, caches = llama.sequences.Sequences().inputs([(0, 5)]), llama.caches(compiled)
    with pytest.raises(TensorError, match=r"not set: key_cache.0, value_cache.0"):
        request.infer(inputs)
    with pytest.raises(TensorError, match=r"'input_ids' has 5, 'position_ids' has 4"):
        request.infer({**inputs, **caches, "position_ids": np.arange(4)})
    with pytest.raises(TensorError, match=r"'past_lens' is i32 \[\?\], not float32 \[1\]"):
        request.infer({**inputs, **caches, "past_lens": np.zeros(1, np.float32)})
    with pytest.raises(TensorError, match=r"'key_cache.0' is f32 \[\?, 2, 32, 16\], not f"):
        request.set_tensor("key_cache.0", caches["key_cache.0"].astype(np.float16))
    with pytest.raises(TensorError, match="written in place"):
        request.set_tensor("key_cache.0", caches["key_cache.0"][::2])


MODES = {
    "NPUW_KOKORO": "YES",
    "NPUW_FLUX2": "YES",
    "NPUW_ONLINE_PIPELINE": "REP",
    "NPUW_ONLINE_ISOLATE": "ATTN",
    "KV_CACHE_PRECISION": "i8",
    "INFERENCE_PRECISION_HINT": "bf16",
    "EXPORT_BLOB": "YES",
    "NPUW_LLM": "YES",
    "NPU_USE_NPUW": "NO",
    "NPUW_PA_DEVICE": "NPU",
}


@pytest.mark.parametrize("option", MODES)
def test_contradicting_options_are_rejected(llama: Any, option: str) -> None:
    with pytest.raises(OptionError, match="NPUW_PA"):
        llama.compile(**{option: MODES[option]})


def test_export_is_rejected(compiled: Any) -> None:
    with pytest.raises(OptionError, match="CACHE_DIR"):
        compiled.export_model()


def test_the_error_without_the_option_names_it(llama: Any) -> None:
    with pytest.raises(ModelError, match="NPUW_PA = YES"):
        Core().compile_model(llama.path, "NPU", {})


def test_a_model_without_paged_attention_is_rejected(tmp_path: Path, llama_8m_ir: Path) -> None:
    with pytest.raises(ModelError, match="paged_attention_transformation"):
        Core().compile_model(llama_8m_ir, "NPU", {"NPUW_PA": "YES"})


@pytest.mark.parametrize(
    ("longest", "sizes"), [(1, (1,)), (5, (1, 5)), (8, (1, 8)), (1024, (1, 8, 64, 512, 1024))]
)
def test_variants_grow_to_the_longest_prompt(longest: int, sizes: tuple[int, ...]) -> None:
    assert variant_sizes(longest) == sizes


@pytest.mark.parametrize("wrong", [-1, 1024, 10**6])
def test_an_id_outside_the_vocabulary_is_rejected_before_caches_are_written(
    llama: Any, compiled: Any, wrong: int
) -> None:
    inputs, caches = llama.sequences.Sequences().inputs([(0, 5)]), llama.caches(compiled)
    ids = inputs["input_ids"].copy()
    ids[3:] = wrong
    with pytest.raises(TensorError, match=rf"input_ids\[3\] is {wrong},.* 0 to 1023"):
        compiled.create_infer_request().infer({**inputs, **caches, "input_ids": ids})
    assert not any(cache.any() for cache in caches.values())
