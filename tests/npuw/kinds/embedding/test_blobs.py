"""Models that read texts are cached, exported and imported like language models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import BlobError, OptionError
from npuw_layer.kinds.embedding.imported_ports import check_whole_ports

IDS = np.random.default_rng(8).integers(10, 512, (1, 40))
GIVEN = {"input_ids": IDS, "attention_mask": np.ones_like(IDS)}
LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
MODELS = [("llama", "NPUW_TEXT_EMBED"), ("bert", "NPUW_TEXT_EMBED"), ("xlmr", "NPUW_TEXT_RERANK")]


def said(compiled: Any) -> np.ndarray:
    return next(iter(compiled.create_infer_request().infer(GIVEN).values()))


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "kind"), MODELS)
def test_a_second_start_compiles_nothing_and_a_blob_needs_no_graph(
    text_model: Callable[[str], Path], tmp_path: Path, name: str, kind: str
) -> None:
    path, options = text_model(name), {**LENGTHS, kind: "YES", "CACHE_DIR": str(tmp_path / "c")}
    first, second = (Core().compile_model(path, "NPU", options) for _ in range(2))
    assert not first.get_property("LOADED_FROM_CACHE")
    assert second.get_property("LOADED_FROM_CACHE")
    blob = tmp_path / "text.blob"
    second.export_model(blob)
    imported = Core().import_model(blob, "NPU", {"WEIGHTS_PATH": str(path.with_suffix(".bin"))})
    assert imported.get_property(kind) is True
    assert [port.any_name for port in imported.outputs] == [port.any_name for port in first.outputs]
    for other in (second, imported):
        np.testing.assert_array_equal(said(other), said(first))


def test_a_language_model_that_ranks_is_cached_and_imported(tiny: Path, tmp_path: Path) -> None:
    options = {**LENGTHS, "NPUW_TEXT_RERANK": "YES", "CACHE_DIR": str(tmp_path / "c")}
    ids = IDS % 97
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    first, second = (Core().compile_model(tiny, "NPU", options) for _ in range(2))
    assert second.get_property("LOADED_FROM_CACHE")
    imported = Core().import_model(second.export_model(), "NPU", {"MODEL_PTR": str(tiny)})
    expected = first.create_infer_request().infer(given)["logits"]
    for other in (second, imported):
        found = other.create_infer_request().infer(given)["logits"]
        np.testing.assert_array_equal(found, expected)


def test_an_imported_blob_keeps_its_options(text_model: Callable[[str], Path]) -> None:
    path = text_model("bert")
    blob = Core().compile_model(path, "NPU", {**LENGTHS, "NPUW_TEXT_EMBED": "YES"}).export_model()
    with pytest.raises(OptionError, match="contradict NPUW_TEXT_EMBED"):
        Core().import_model(blob, "NPU", {"MODEL_PTR": str(path), "NPUW_TEXT_EMBED": "NO"})


class Program:
    """A program that claims given inputs and outputs."""

    def __init__(self, inputs: list[TensorInfo], outputs: list[TensorInfo]) -> None:
        self.inputs, self.outputs = inputs, outputs


def test_programs_that_do_not_read_a_text_are_rejected(compiled: Callable[..., Any]) -> None:
    whole = compiled("bert")._compiled
    ((stage, loaded),) = whole.models.items()
    inputs, outputs = [*loaded.inputs], [*loaded.outputs]
    check_whole_ports([stage], [loaded])
    texts = [info for info in inputs if info.name in ("input_ids", "attention_mask")]
    longer = [replace(info, shape=(1, 999)) for info in texts]
    for changed, given, message in (
        (longer, outputs, "not a text"),
        (texts[:1], outputs, "not a text"),
        ([*texts, TensorInfo("other", "i64", (1, stage.tokens))], outputs, "not a text"),
        (texts, [], "other outputs"),
        (texts, [replace(outputs[0], element="i64")], "i64"),
        (texts, [replace(outputs[0], shape=(2, 3))], "not f32"),
    ):
        with pytest.raises(BlobError, match=message):
            check_whole_ports([stage], [Program(changed, given)])  # type: ignore[list-item]
