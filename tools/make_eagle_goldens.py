"""Golden files tests/goldens/exported/eagle: a target and a draft model as Eagle 3 has them.

openvino_genai makes a target return the hidden states of some layers, and a draft take them in
addition to ids; OpenVINO makes the same changes here to two of the exported models. Its f32 results
are stored as in make_export_goldens.py, with the same recipe of the ``.bin``.

Both models are also written with ``eagle_tree_mask``, which openvino_genai adds to the mask that
all attentions share. They run a tree of candidates after a prompt; the outputs after its accepted
path are OpenVINO's for a conversation with only the prompt and that path.

    pip install openvino
    python tools/make_eagle_goldens.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, EXPORTED, keep, restore
from make_export_goldens import VOCABULARY

TARGET = EXPORTED / "eagle"
PROMPT, STEP, WIDTH = 24, 3, 96
STATES = "last_hidden_state"
TREE_MASK = "eagle_tree_mask"
PARENTS = [-1, 0, 0, 1, 1, 2, 3, 4, 6, 6]
"""Parents of a tree's candidates, each before its children; more than a step of 8 holds."""
ACCEPTED = [0, 1, 3, 6, 9]
AFTER = 3
"""Number of tokens after the accepted path."""


def as_target(model: Any) -> None:
    """Add an output: the hidden states of two middle layers."""
    from openvino import opset13 as ops

    found = {node.get_friendly_name(): node for node in model.get_ops()}
    layers = [found[f"__module.model.layers.{number}/aten::add/Add_1"] for number in (1, 3)]
    _give(model, ops.concat([layer.output(0) for layer in layers], 2))


def as_draft(model: Any) -> None:
    """Add an input for hidden states, and an output for those of the last layer."""
    import openvino as ov
    from openvino import opset13 as ops

    found = {node.get_friendly_name(): node for node in model.get_ops()}
    embeds = found["__module.model.embed_tokens/aten::embedding/Gather"].output(0)
    readers = [*embeds.get_target_inputs()]
    # The exporter leaves the width dynamic: openvino_genai moves the matmul that defines it.
    states = ops.parameter(ov.PartialShape([-1, -1, -1]), np.float32, "hidden_states")
    states.output(0).set_names({"hidden_states"})
    joined = ops.add(embeds, states)
    for reader in readers:
        reader.replace_source_output(joined.output(0))
    model.add_parameters([states])
    _give(model, found["__module.model.layers.1/aten::add/Add_1"])


def with_tree(change: Callable[[Any], None]) -> Callable[[Any], None]:
    """Extend a change: the model also adds ``eagle_tree_mask`` to the candidates' scores."""

    def changed(model: Any) -> None:
        import openvino as ov
        from openvino import opset13 as ops

        change(model)
        attentions = [op for op in model.get_ops() if op.get_type_name() == _ATTENTION]
        (mask,) = {op.input(3).get_source_output() for op in attentions}
        shape = ov.PartialShape([-1, 1, -1, -1])
        tree = ops.parameter(shape, mask.get_element_type().to_dtype(), TREE_MASK)
        tree.output(0).set_names({TREE_MASK})
        joined = ops.add(mask, tree)
        for op in attentions:
            op.input(3).replace_source_output(joined.output(0))
        model.add_parameters([tree])
        model.validate_nodes_and_infer_types()

    return changed


_ATTENTION = "ScaledDotProductAttention"


def _give(model: Any, node: Any) -> None:
    from openvino import opset13 as ops

    node.output(0).set_names({STATES})
    model.add_results([ops.result(node.output(0))])
    model.set_rt_info(True, "eagle3_mode")
    model.validate_nodes_and_infer_types()


def oracle(xml: Path) -> dict[str, np.ndarray]:
    """Return logits and hidden states of a prompt, and of a step of some tokens, in f32."""
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


def tree_oracle(xml: Path) -> dict[str, np.ndarray]:
    """Return the outputs of a tree's candidates, and after its accepted path, in f32."""
    import openvino as ov

    compiled = ov.Core().compile_model(xml, "CPU", EXACT)
    names = {name for port in compiled.inputs for name in port.get_names()}
    draw = np.random.RandomState(6)
    count = len(PARENTS)
    found = {
        name: draw.randint(10, VOCABULARY, (1, n)).astype(np.int64)
        for name, n in (("prompt", PROMPT), ("tree", count), ("after", AFTER))
    }
    if "hidden_states" in names:
        for name in ("prompt", "tree", "after"):
            shape = (1, found[name].shape[1], WIDTH)
            found[f"{name}_hidden"] = draw.standard_normal(shape).astype(np.float32)
    ancestors = np.eye(count, dtype=bool)
    for node, parent in enumerate(PARENTS[1:], 1):
        ancestors[node] |= ancestors[parent]
    mask = np.zeros((1, 1, count, PROMPT + count), np.float32)
    mask[..., PROMPT:] = np.where(ancestors, 0, -np.inf)
    found |= {"parents": np.array(PARENTS), "accepted": np.array(ACCEPTED), "mask": mask}

    def say(request: Any, name: str, chosen: Any, begin: int, depths: Any, tree: Any) -> None:
        inputs = {"input_ids": found[name][:, chosen], TREE_MASK: tree}
        if "hidden_states" in names:
            inputs["hidden_states"] = found[f"{name}_hidden"][:, chosen]
        total = begin + inputs["input_ids"].shape[1]
        inputs["attention_mask"] = np.ones((1, total), np.int64)
        inputs["position_ids"] = np.array(depths, np.int64)[None] + begin
        inputs["beam_idx"] = np.zeros(1, np.int32)
        request.infer(inputs)

    none = np.zeros((1, 1, 1, 1), np.float32)
    whole = slice(None)
    looking, accepting = compiled.create_infer_request(), compiled.create_infer_request()
    say(looking, "prompt", whole, 0, range(PROMPT), none)
    say(looking, "tree", whole, PROMPT, ancestors.sum(1) - 1, mask)
    say(accepting, "prompt", whole, 0, range(PROMPT), none)
    say(accepting, "tree", ACCEPTED, PROMPT, range(len(ACCEPTED)), none)
    say(accepting, "after", whole, PROMPT + len(ACCEPTED), range(AFTER), none)
    for what, request in (("tree", looking), ("after", accepting)):
        found[f"{what}_logits"] = np.array(request.get_tensor("logits").data)
        found[f"{what}_states"] = np.array(request.get_tensor(STATES).data)
    return found


def main() -> None:
    """Write all golden files."""
    import openvino as ov

    makers = {
        "target": ("llama_deep_fp16", as_target, oracle),
        "draft": ("llama_fp16", as_draft, oracle),
        "tree_target": ("llama_deep_fp16", with_tree(as_target), tree_oracle),
        "tree_draft": ("llama_fp16", with_tree(as_draft), tree_oracle),
    }
    for name, (source, change, ask) in makers.items():
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch)
            model = ov.Core().read_model(restore.restore(EXPORTED, source, work / "source"))
            change(model)
            ov.save_model(model, work / f"{name}.xml", compress_to_fp16=False)
            found = ask(keep(work / f"{name}.xml", TARGET, name, work))
            np.savez_compressed(TARGET / f"{name}.npz", **found)
            print(name, {key: value.shape for key, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
