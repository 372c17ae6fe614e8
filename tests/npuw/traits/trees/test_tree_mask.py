"""The tree mask: placement, and rejections."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from tests.npuw.splitting import split

from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer import Core
from npuw_layer.errors import BlobError, ModelError, TensorError, TooManyTokens
from npuw_layer.llm.graph.pipeline import run_passes
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.traits.trees.graph import DropTrees, ShapeTrees
from npuw_layer.traits.trees.names import TREE_MASK
from npuw_layer.traits.trees.trait import check_trees
from npuw_layer.traits.trees.tree_mask import TreeMask, fill

from .conftest import EAGLE, NOTHING, OPTIONS, Talk, Tree, distance

MASK = TreeMask("f32")
CHAIN = np.triu(np.full((3, 3), -np.inf, np.float32), 1)


def test_new_tokens_follow_the_complete_past() -> None:
    tree = np.arange(1, 11, dtype=np.float32).reshape(2, 5)
    target = np.full((1, 1, 4, 10), 9, np.float32)
    fill(target, tree, past=6)
    expected = np.zeros((4, 10))
    expected[:2, :3], expected[:2, 6:8] = tree[:, :3], tree[:, 3:]
    assert np.array_equal(target[0, 0], expected)
    fill(target, None, past=6)
    assert not target.any()


def test_a_mask_ends_with_the_last_token_and_is_padded_with_zeros() -> None:
    square = np.array([[0, -np.inf], [-2, 0]], np.float32)
    found = MASK.whole(square, new=3, positions=7)
    expected = np.zeros((3, 7))
    expected[1:, 5:] = [[0, -1e30], [-2, 0]]
    assert np.array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("values", [NOTHING[0, 0], np.zeros((3, 9), np.float32), CHAIN])
def test_a_causal_mask_has_no_effect(values) -> None:
    assert MASK.whole(values, new=3, positions=9) is None


@pytest.mark.parametrize("shape", [(4, 4), (1, 10)])
def test_a_mask_with_too_many_rows_or_columns_is_rejected(shape) -> None:
    with pytest.raises(TensorError, match="for 3 new tokens among 9 positions; pass as many"):
        MASK.whole(np.zeros(shape, np.float32), new=3, positions=9)


def test_nan_is_rejected() -> None:
    with pytest.raises(TensorError, match="eagle_tree_mask has NaN values"):
        MASK.whole(np.full((1, 1), np.nan, np.float32), new=1, positions=1)


@pytest.mark.parametrize(
    "mask",
    [
        np.zeros((1, 1), np.float32),
        np.zeros((1, 2, 1, 1), np.float32),
        np.zeros((2, 1, 1, 1), np.float32),
        np.zeros((1, 1, 0, 1), np.float32),
        np.zeros((1, 1, 1, 1), np.float64),
    ],
)
def test_masks_of_other_types_and_shapes_are_rejected(begin, mask) -> None:
    with pytest.raises(TensorError, match=r"eagle_tree_mask is .*, not f32 \[1, 1, tokens, pos"):
        begin().tell([5, 6], mask=mask)


def test_the_mask_is_required(begin) -> None:
    given = {"input_ids": [[5]], "attention_mask": [[1]], "position_ids": [[0]]}
    with pytest.raises(TensorError, match="inputs are missing: eagle_tree_mask"):
        begin().request.infer({name: np.array(values) for name, values in given.items()})


def test_a_tree_in_a_prompt_is_rejected(begin) -> None:
    talk, plain = begin(), begin()
    tree = Tree([-1, 0, 0, 1, 2])
    with pytest.raises(TensorError, match=r"5 tokens are read as a prompt, .* at most 16 in"):
        talk.tell(range(5), tree=tree)
    chain = Tree([-1, 0, 1, 2, 3])
    found, expected = talk.tell(range(5), tree=chain), plain.tell(range(5))
    assert np.array_equal(found["logits"], expected["logits"])
    with pytest.raises(TooManyTokens):
        talk.tell(range(17), tree=Tree([-1, *[0] * 16]))
    talk = begin(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="YES")
    talk.tell(range(5))
    with pytest.raises(TensorError, match="17 tokens are read as a prompt"):
        talk.tell(range(17), tree=Tree([-1, *[0] * 16]))


def test_remote_tensors_are_read_in_place(begin, compiled) -> None:
    talk, plain = begin(), begin()
    for one in (talk, plain):
        one.tell(range(20, 50))
    mask = Tree([-1, 0, 0, 1, 2]).mask(30)
    context = Core().get_default_context("NPU")
    remote = context.create_tensor("f32", mask.shape, {"MEM_TYPE": "L0_INTERNAL_BUF"})
    remote.copy_from(mask)
    tree = Tree([-1, 0, 0, 1, 2])
    found = talk.tell(range(5), tree=tree, mask=remote)
    assert np.array_equal(found["logits"], plain.tell(range(5), tree=tree, mask=mask)["logits"])


@pytest.fixture(scope="module")
def model(restored):
    return read_model(restored(EAGLE, "tree_target"))


def shapes(model) -> dict[str, tuple[int, ...]]:
    return {port.name: tuple(port.type.get_shape()) for port in model.inputs}


def test_steps_have_the_mask_and_prompts_do_not(model) -> None:
    assert shapes(split(model, 16, 48))[TREE_MASK] == (1, 1, 16, 64)
    prompts = model.clone()
    run_passes(prompts, [DropTrees()])
    assert TREE_MASK not in shapes(prompts)
    assert len(list(prompts.body.ops)) == len(list(model.body.ops)) - 1, "without the Add"


@pytest.mark.parametrize(("element", "dims"), [("f32", (1, -1, -1)), ("i64", (-1, 1, -1, -1))])
def test_models_with_other_types_of_the_mask_are_rejected(element, dims) -> None:
    other, _ = Model.build([(TREE_MASK, tensor(element, dims))])
    with pytest.raises(ModelError, match=rf"eagle_tree_mask of {element} .*, not f32 or f16"):
        run_passes(other, [ShapeTrees(1, 0)])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"NPUW_LLM_ON_FULL": "SLIDE"}, "NPUW_LLM_ON_FULL = SLIDE"),
        ({"NPUW_LLM_ON_FULL": "TRUNCATE"}, "NPUW_LLM_ON_FULL = TRUNCATE"),
        ({"NPUW_LLM_BATCH_SLOTS": "1,4"}, "NPUW_LLM_BATCH_SLOTS"),
        ({"NPUW_TEXT_RERANK": "YES"}, "NPUW_TEXT_RERANK"),
    ],
)
def test_the_error_for_a_ruled_out_option_names_it(restored, options, problem) -> None:
    path = restored(EAGLE, "tree_target")
    with pytest.raises(ModelError, match=f"takes trees of candidates .*{problem}"):
        Core().compile_model(path, "NPU", OPTIONS | {"NPUW_EAGLE": "NO"} | options)


def test_states_in_place_of_rows_are_ruled_out() -> None:
    with pytest.raises(ModelError, match="cannot drop single tokens"):
        check_trees([TREE_MASK], ["cache_params.past.conv.0"], parse_options({}))


def test_batched_conversations_have_no_trees(compiled) -> None:
    with pytest.raises(ModelError, match="do not support the outputs last_hidden_state"):
        compiled().create_batching()


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("which", "change", "problem"),
    [
        ("generate_128", {"shape": (1, 1, 16, 127)}, "generate_128 has eagle_tree_mask"),
        ("generate_128", {"element": "i64"}, "generate models have eagle_tree_mask of"),
        ("generate_128", {"element": "f16"}, "generate models have eagle_tree_mask of"),
        ("prefill_16_after_48", {"shape": (1, 1, 1, 1)}, "prefill_16_after_48 has eagle_tree"),
    ],
)
def test_tree_masks_of_imported_programs_are_checked(compiled, which, change, problem) -> None:
    made = compiled(NPUW_LLM_GENERATE_PYRAMID_STEPS="64,128")._compiled
    stages = made.plan.stages
    programs = [
        SimpleNamespace(inputs=[*one.inputs], outputs=[*one.outputs])
        for one in made.models.values()
    ]
    check_ports(stages, programs, made.options)
    names = [stage.name for stage in stages]
    (port,) = (i for i in programs[names.index("generate_128")].inputs if i.name == TREE_MASK)
    changed = programs[names.index(which)]
    changed.inputs = [one for one in changed.inputs if one.name != TREE_MASK]
    changed.inputs.append(dataclasses.replace(port, **change))
    with pytest.raises(BlobError, match=problem):
        check_ports(stages, programs, made.options)


def test_models_without_the_mask_have_no_such_variable(restored) -> None:
    """A rewind keeps a chain's first candidates, as before."""
    made = Core().compile_model(restored(EAGLE, "target"), "NPU", OPTIONS)
    names = [state.name for state in made.create_infer_request().query_state()]
    assert "npuw_eagle3_sampling_result" not in names
    with pytest.raises(TensorError, match="no input 'eagle_tree_mask'"):
        made.create_infer_request().set_tensor(TREE_MASK, NOTHING)


def test_goldens_of_trees_and_chains_differ(begin) -> None:
    """The tests of this folder would otherwise pass without masks."""
    ids, tree = range(60, 65), Tree([-1, 0, 0, 1, 2])
    talk, other = begin(), begin()
    for one in (talk, other):
        one.tell(range(20, 50))
    found, without = talk.tell(ids, tree=tree), other.tell(ids, tree=tree, mask=NOTHING)
    assert distance(found["logits"], without["logits"]) > 1e-2
    assert isinstance(talk, Talk)
