"""Inputs and outputs of a language model before the split.

Static models keep the order of inputs. Inputs that the split removed follow from the
rest: beam_idx, the last input that exporters write (openvino_genai adds inputs of traits after it),
and inputs that a trait replaced. So nothing of the model need be kept, and any blob shows the
inputs of its programs.

Source: docs/reference/npuw.md#tensors-of-static-models; the files that the exporter wrote, in
tests/goldens.
"""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.trait import OpenInput
from npuw_layer.tensors.names import BEAMS, LOGITS, MASK
from npuw_layer.tensors.token_inputs import TokenInput
from npuw_layer.tensors.traits import traits


def inputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """Return the inputs; dimensions that vary by inference are open."""
    stage = (compiled.plan.generate or compiled.plan.prefill)[0]
    kinds = [kind for info in compiled.models[stage].inputs for kind in _kinds(info)]
    return numbered(with_beams(kinds))


def outputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """Return the outputs: logits, and others that follow tokens."""
    made = (info for model in compiled.models.values() for info in model.outputs)
    vocabulary = next(info.shape[-1] for info in made if info.name == LOGITS)
    beside = [(one.name, "f32", one.shape(OPEN, OPEN)) for one in compiled.token_outputs]
    return numbered([(LOGITS, "f32", (OPEN, OPEN, vocabulary)), *beside])


def numbered(kinds: list[OpenInput]) -> list[OpenPort]:
    """Return numbered ports of inputs or outputs, in their order."""
    return [OpenPort(name, element, n, shape) for n, (name, element, shape) in enumerate(kinds)]


def with_beams(kinds: list[OpenInput]) -> list[OpenInput]:
    """Insert beam_idx, which no static model has, where exporters put it."""
    behind = {name for trait in traits() for name in trait.last_inputs}
    first = [kind for kind in kinds if kind[0] not in behind]
    last = [kind for kind in kinds if kind[0] in behind]
    return [*first, (BEAMS, "i32", (OPEN,)), *last]


def _kinds(info: TensorInfo) -> Sequence[OpenInput]:
    """Return the model's inputs behind a static model's input; none if the split added it."""
    for trait in traits():
        found = trait.open_inputs(info)
        if found is not None:
            return found
    if info.name == MASK:
        return [(MASK, info.element, (OPEN, OPEN))]
    one = TokenInput.of(info)
    return [] if one is None else [(one.name, one.element, one.shape(OPEN, OPEN))]
