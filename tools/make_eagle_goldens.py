"""Makes tests/goldens/exported/eagle: a target and a draft as Eagle 3 has them.

openvino_genai lets a target give out the states of some layers, and a draft takes them beside ids;
the same is done here to two of the exported models, by OpenVINO itself. What it says of them in f32
is kept as make_export_goldens.py keeps it, whose recipe of the ``.bin`` they share.

    pip install openvino
    python tools/make_eagle_goldens.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, EXPORTED, keep, restore
from make_export_goldens import VOCABULARY

TARGET = EXPORTED / "eagle"
PROMPT, STEP, WIDTH = 24, 3, 96
STATES = "last_hidden_state"


def as_target(model: Any) -> None:
    """Give out what two layers of the middle make."""
    from openvino import opset13 as ops

    found = {node.get_friendly_name(): node for node in model.get_ops()}
    layers = [found[f"__module.model.layers.{number}/aten::add/Add_1"] for number in (1, 3)]
    _give(model, ops.concat([layer.output(0) for layer in layers], 2))


def as_draft(model: Any) -> None:
    """Take states beside ids, and give out those that the last layer makes."""
    import openvino as ov
    from openvino import opset13 as ops

    found = {node.get_friendly_name(): node for node in model.get_ops()}
    embeds = found["__module.model.embed_tokens/aten::embedding/Gather"].output(0)
    readers = [*embeds.get_target_inputs()]
    # The exporter leaves the width open: openvino_genai moves the product that made it known.
    states = ops.parameter(ov.PartialShape([-1, -1, -1]), np.float32, "hidden_states")
    states.output(0).set_names({"hidden_states"})
    joined = ops.add(embeds, states)
    for reader in readers:
        reader.replace_source_output(joined.output(0))
    model.add_parameters([states])
    _give(model, found["__module.model.layers.1/aten::add/Add_1"])


def _give(model: Any, node: Any) -> None:
    from openvino import opset13 as ops

    node.output(0).set_names({STATES})
    model.add_results([ops.result(node.output(0))])
    model.set_rt_info(True, "eagle3_mode")
    model.validate_nodes_and_infer_types()


def oracle(xml: Path) -> dict[str, np.ndarray]:
    """Logits and states of a prompt, and of a step of some tokens, in f32."""
    import openvino as ov

    compiled = ov.Core().compile_model(xml, "CPU", EXACT)
    request = compiled.create_infer_request()
    names = {name for port in compiled.inputs for name in port.get_names()}
    draw = np.random.RandomState(4)
    total = PROMPT + STEP
    found = {"input_ids": draw.randint(10, VOCABULARY, (1, total)).astype(np.int64)}
    if "hidden_states" in names:
        found["hidden_states"] = draw.standard_normal((1, total, WIDTH)).astype(np.float32)
    said = dict(found)
    for begin, end, what in ((0, PROMPT, "prompt"), (PROMPT, total, "step")):
        inputs = {name: values[:, begin:end] for name, values in said.items()}
        inputs["attention_mask"] = np.ones((1, end), np.int64)
        inputs["position_ids"] = np.arange(begin, end, dtype=np.int64)[None]
        inputs["beam_idx"] = np.zeros(1, np.int32)
        request.infer(inputs)
        logits = np.array(request.get_tensor("logits").data)
        found[f"{what}_logits"] = logits[:, -1:] if what == "prompt" else logits
        found[f"{what}_states"] = np.array(request.get_tensor(STATES).data)
    return found


def main() -> None:
    """Make the golden files of both."""
    import openvino as ov

    sources = {"target": ("llama_deep_fp16", as_target), "draft": ("llama_fp16", as_draft)}
    for name, (source, change) in sources.items():
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch)
            model = ov.Core().read_model(restore.restore(EXPORTED, source, work / "source"))
            change(model)
            ov.save_model(model, work / f"{name}.xml", compress_to_fp16=False)
            found = oracle(keep(work / f"{name}.xml", TARGET, name, work))
            np.savez_compressed(TARGET / f"{name}.npz", **found)
            print(name, {key: value.shape for key, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
