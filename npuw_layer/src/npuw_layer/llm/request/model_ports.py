"""Inputs and outputs of a language model as they were before it was split.

How it works. Static models keep the order of inputs. What the split took away is known from the
rest: beam_idx, which is the last one that exporters write (openvino_genai adds states and masks of
trees behind it), and the marks of images' tokens, which exporters write before their features. So
nothing has to be kept of the model, and a blob of anybody's shows what its programs take.

Source: fact sheet npuw §a.6; the files that the exporter wrote, in tests/goldens.
"""

from __future__ import annotations

from collections.abc import Iterator

from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.names import (
    BEAMS,
    HIDDEN_STATES,
    INTERNAL_HIDDEN_STATES,
    LOGITS,
    MASK,
    VISUAL_EMBEDS,
    VISUAL_MASKS,
)
from npuw_layer.llm.request.token_inputs import TokenInput
from npuw_layer.traits.trees.names import TREE_MASK

_Kind = tuple[str, str, tuple[int, ...]]
"""Name, element type and dimensions."""

_BEHIND_BEAMS = (HIDDEN_STATES, INTERNAL_HIDDEN_STATES, TREE_MASK)


def inputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """The inputs, with the dimensions that inferences decide open."""
    stage = (compiled.plan.generate or compiled.plan.prefill)[0]
    kinds = [kind for info in compiled.models[stage].inputs for kind in _kinds(info)]
    return numbered(with_beams(kinds))


def outputs_of(compiled: CompiledLLM) -> list[OpenPort]:
    """The outputs: logits, and what else there is of each token."""
    made = (info for model in compiled.models.values() for info in model.outputs)
    vocabulary = next(info.shape[-1] for info in made if info.name == LOGITS)
    beside = [(one.name, "f32", one.shape(OPEN, OPEN)) for one in compiled.token_outputs]
    return numbered([(LOGITS, "f32", (OPEN, OPEN, vocabulary)), *beside])


def numbered(kinds: list[_Kind]) -> list[OpenPort]:
    """Make ports of kinds, in their order."""
    return [OpenPort(name, element, n, shape) for n, (name, element, shape) in enumerate(kinds)]


def with_beams(kinds: list[_Kind]) -> list[_Kind]:
    """Put beam_idx, which is ignored, where exporters do."""
    first = [kind for kind in kinds if kind[0] not in _BEHIND_BEAMS]
    last = [kind for kind in kinds if kind[0] in _BEHIND_BEAMS]
    return [*first, (BEAMS, "i32", (OPEN,)), *last]


def _kinds(info: TensorInfo) -> Iterator[_Kind]:
    """What of the model an input of a static model is; nothing if it came with the split."""
    if info.name == MASK:
        yield MASK, info.element, (OPEN, OPEN)
    if info.name == TREE_MASK:
        yield TREE_MASK, info.element, (OPEN, 1, OPEN, OPEN)
    one = TokenInput.of(info)
    if one is None:
        return
    if one.name != VISUAL_EMBEDS:
        yield one.name, one.element, one.shape(OPEN, OPEN)
        return
    yield VISUAL_MASKS, "boolean", (OPEN, OPEN)
    yield one.name, one.element, (*one.axes, OPEN, *one.row)
