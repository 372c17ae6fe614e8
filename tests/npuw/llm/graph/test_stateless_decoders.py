"""Language models without state are rejected, with instructions to export them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.errors import ModelError

IDS = ("input_ids", "attention_mask", "position_ids")
CACHES = ("past_key_values.0.key", "past_key_values.0.value")


def decoder(caches: tuple[str, ...]) -> Model:
    """Build a model of ids; caches, if any, are inputs and outputs."""
    cache = tensor("f32", (-1, 2, -1, 4))
    ports = [(name, tensor("i64", (-1, -1))) for name in IDS]
    model, values = Model.build([*ports, *((name, cache) for name in caches)])
    given = dict(zip((*IDS, *caches), values, strict=True))
    g = GraphBuilder(model)
    table = g.constant(np.ones((8, 8), np.float32))
    logits = g.gather(table, given["input_ids"], 0)
    mask = g.convert(given["attention_mask"], "f32")
    logits = g.op(Add, logits, g.unsqueeze(mask, -1))
    presents = {name.replace("past_key_values", "present"): given[name] for name in caches}
    kept = {name: g.times(value, 2) for name, value in presents.items()}
    model.set_outputs([("logits", logits), *kept.items()])
    return model


@pytest.mark.parametrize(
    ("caches", "says"),
    [
        ((), r"no variables \(ReadValue, Assign\) keep K and V; export it with state: "),
        (CACHES, r"K and V; 2 inputs such as 'past_key_values.0.key' take them; export it with "),
    ],
    ids=["text-generation", "disable-stateful"],
)
def test_the_error_for_a_decoder_without_state_tells_how_to_export_it(
    tmp_path: Path, caches: tuple[str, ...], says: str
) -> None:
    write_ir(decoder(caches), tmp_path / "model.xml")
    says += ".*--task text-generation-with-past, without --disable-stateful"
    with pytest.raises(ModelError, match=f"^the model is stateless: .*{says}") as raised:
        Core().compile_model(tmp_path / "model.xml", "NPU")
    assert "\n" not in str(raised.value)
