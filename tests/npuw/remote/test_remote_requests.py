"""Requests of a language model with remote tensors: accesses in place, copies, and counters."""

from __future__ import annotations

import gc
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.conftest import SMALL, VOCABULARY

from driver_layer import ze
from npuw_layer import CompiledModel, Core, RemoteContext, Tensor, page_aligned_bytes
from npuw_layer.errors import RemoteError, RequestBusy, TensorError

IDS = np.random.default_rng(4).integers(0, VOCABULARY, 60)
ROW = 4 * VOCABULARY
SEVERAL = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}


@pytest.fixture(scope="module")
def models(tiny):
    made: dict[str, CompiledModel] = {}

    def compiled(**options: Any) -> CompiledModel:
        key = repr(sorted(options.items()))
        if key not in made:
            core = Core()
            made[key] = cast("CompiledModel", core.compile_model(tiny, "NPU", SMALL | options))
        return made[key]

    return compiled


def inputs(ids: np.ndarray, past: int = 0) -> dict[str, np.ndarray]:
    count = len(ids)
    return {
        "input_ids": ids[None],
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count)[None],
        "beam_idx": np.zeros((1,), np.int64),
    }


def of_device(context: RemoteContext, element: str, shape: tuple[int, ...]) -> Any:
    """Allocate memory that the host cannot access."""
    handle = context.get_params()["L0_CONTEXT"]
    memory = ze.zeMemAllocDevice(handle, 4096 * 8, 0, handle.device)
    return context.create_tensor(element, shape, {"MEM_TYPE": "SHARED_BUF", "MEM_HANDLE": memory})


def of_pages(context: RemoteContext, element: str, shape: tuple[int, ...]) -> Any:
    pages = page_aligned_bytes(4096)
    return context.create_tensor(element, shape, {"MEM_TYPE": "CPU_VA", "MEM_HANDLE": pages})


MAKERS = {
    "internal": lambda context, element, shape: context.create_tensor(element, shape),
    "device": of_device,
    "pages": of_pages,
    "another Core's": lambda _, element, shape: (
        Core().get_default_context("NPU").create_tensor(element, shape)
    ),
}


def remote(context: RemoteContext, values: np.ndarray, maker: str) -> Any:
    tensor = MAKERS[maker](context, "i64", values.shape)
    tensor.copy_from(values)
    return tensor


def counts(request: Any, name: str) -> tuple[int, int, int]:
    """Return the bytes copied in, copied out and used in place."""
    found = request.transfers.of(name)
    return found.host_to_device, found.device_to_host, found.in_place


def test_a_language_model_has_the_context_of_its_core(models, tiny) -> None:
    core = Core()
    compiled = core.compile_model(tiny, "NPU", SMALL)
    ours = core.get_default_context("NPU").get_params()["L0_CONTEXT"]
    assert compiled.get_context().get_params()["L0_CONTEXT"] is ours
    other = models().get_context().get_params()["L0_CONTEXT"]
    assert other is not ours, "another Core has another context"


def test_an_imported_model_has_the_context_of_its_core(models) -> None:
    core = Core()
    compiled = core.import_model(models(ENABLE_WEIGHTLESS="NO").export_model())
    ours = core.get_default_context("NPU").get_params()["L0_CONTEXT"]
    assert compiled.get_context().get_params()["L0_CONTEXT"] is ours


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [{"NPUW_DEVICES": "NPU,CPU"}, {"NPUW_ACC_CHECK": "YES"}],
    ids=lambda options: next(iter(options)),
)
def test_a_model_on_several_devices_has_the_context_of_the_npu(models, options) -> None:
    compiled = models(**options)
    tensor = compiled.get_context().create_tensor("f32", (1, 1, VOCABULARY))
    request = compiled.create_infer_request()
    request.set_tensor("logits", tensor)
    assert request.infer(inputs(IDS)) == {}
    expected = models().create_infer_request().infer(inputs(IDS))["logits"]
    np.testing.assert_allclose(tensor.data, expected, rtol=1e-4, atol=1e-4)


def test_without_the_npu_there_is_no_context(tiny) -> None:
    compiled = Core().compile_model(tiny, "NPU", SMALL | {"NPUW_DEVICES": "CPU"})
    with pytest.raises(RemoteError, match="NPUW_DEVICES = CPU: remote tensors are NPU memory"):
        compiled.get_context()


@pytest.mark.parametrize("maker", MAKERS)
def test_inputs_are_read_from_remote_tensors(models, maker) -> None:
    compiled = models()
    request, plain = (compiled.create_infer_request() for _ in range(2))
    context, given = compiled.get_context(), inputs(IDS)
    for name, values in given.items():
        request.set_tensor(name, remote(context, values, maker))
    assert np.array_equal(request.infer()["logits"], plain.infer(given)["logits"])
    nbytes = IDS.nbytes
    fetched = nbytes if maker == "device" else 0
    for name in ("input_ids", "attention_mask", "position_ids"):
        assert counts(request, name) == (nbytes, fetched, 0)
        assert counts(plain, name) == (nbytes, 0, 0)
    assert counts(request, "beam_idx") == (0, 0, 0), "no model reads it"


def test_inputs_are_read_when_an_inference_runs(models) -> None:
    """The request is not notified of changes to the memory."""
    compiled = models()
    request, plain = (compiled.create_infer_request() for _ in range(2))
    ids = remote(compiled.get_context(), IDS[None] * 0, "internal")
    request.set_tensor("input_ids", ids)
    given = inputs(IDS)
    del given["input_ids"]
    for shift in (0, 1):
        ids.data[...] = np.roll(IDS, shift)
        expected = plain.infer(inputs(np.roll(IDS, shift)))["logits"]
        assert np.array_equal(request.infer(given)["logits"], expected)


def test_infer_uses_remote_tensors_for_one_inference(models) -> None:
    compiled = models()
    request, plain = (compiled.create_infer_request() for _ in range(2))
    context = compiled.get_context()
    given = {name: remote(context, values, "device") for name, values in inputs(IDS).items()}
    assert np.array_equal(request.infer(given)["logits"], plain.infer(inputs(IDS))["logits"])
    request.start_async({name: remote(context, v, "pages") for name, v in inputs(IDS).items()})
    request.wait()
    assert np.array_equal(request.get_tensor("logits").data, plain.get_tensor("logits").data)
    with pytest.raises(TensorError, match="missing: input_ids"):
        request.infer()


@pytest.mark.parametrize("maker", MAKERS)
def test_logits_are_written_to_the_set_tensor(models, maker) -> None:
    compiled = models()
    request, plain = (compiled.create_infer_request() for _ in range(2))
    logits = MAKERS[maker](compiled.get_context(), "f32", (1, 1, VOCABULARY))
    request.set_tensor("logits", logits)
    assert request.get_tensor("logits") is logits
    values = np.empty((1, 1, VOCABULARY), np.float32)
    for turn, step in enumerate([inputs(IDS), inputs(IDS[:1], 60), inputs(IDS[1:2], 61)], 1):
        assert request.infer(step) == {}
        logits.copy_to(values)
        assert np.array_equal(values, plain.infer(step)["logits"])
        near = maker != "another Core's"
        expected = (0, 0, turn * ROW) if near else (0, turn * ROW, 0)
        assert counts(request, "logits") == expected
        assert counts(plain, "logits") == (0, turn * ROW, 0)
    assert ("of another context" in request.execution_report()["logits"]) is not near


def test_the_device_writes_directly_to_the_set_memory(models) -> None:
    """The LM head has no other output: its result for another request remains there."""
    compiled = models()
    request = compiled.create_infer_request()
    before = request.infer(inputs(IDS))["logits"].copy()
    (arena, _) = request._conversation.reader.head._models[1]
    pages = page_aligned_bytes(ROW)
    properties = {"MEM_TYPE": "CPU_VA", "MEM_HANDLE": pages}
    tensor = compiled.get_context().create_tensor("f32", (1, 1, VOCABULARY), properties)
    request.set_tensor("logits", tensor)
    request.infer(inputs(IDS[::-1].copy()))
    assert np.array_equal(arena["logits"], before)
    expected = compiled.create_infer_request().infer(inputs(IDS[::-1].copy()))["logits"]
    assert np.array_equal(pages[:ROW].view(np.float32), expected.reshape(-1))


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [{"NPUW_LLM_SHARED_HEAD": "NO"}, SEVERAL],
    ids=["a head in each model", "rows between"],
)
def test_logits_that_no_lm_head_writes_in_place_are_copied_once(models, options) -> None:
    compiled = models(**options)
    request, plain = (compiled.create_infer_request() for _ in range(2))
    rows = 3 if options is SEVERAL else 1
    for each in (request, plain):
        each.infer(inputs(IDS))
    logits = compiled.get_context().create_tensor("f32", (1, rows, VOCABULARY))
    request.set_tensor("logits", logits)
    request.transfers.reset()
    step = inputs(IDS[:rows], 60)
    assert request.infer(step) == {}
    assert np.array_equal(logits.data, plain.infer(step)["logits"])
    assert counts(request, "logits") == (0, rows * ROW, 0)


def test_a_tensor_must_have_the_rows_of_the_logits(models) -> None:
    """A tensor of another size is rejected before any effect."""
    compiled = models(**SEVERAL)
    request = compiled.create_infer_request()
    request.infer(inputs(IDS))
    eight = compiled.get_context().create_tensor("f32", (1, 8, VOCABULARY))
    request.set_tensor("logits", eight)
    with pytest.raises(TensorError, match=r"logits will be \[1, 1, 97\], .* is \[1, 8, 97\]"):
        request.infer(inputs(IDS[:1], 60))
    with pytest.raises(TensorError, match=r"logits will be \[1, 1, 97\]"):
        request.infer(inputs(IDS))
    assert int(request.query_state()[-1].state.data[0]) == 60
    assert request.infer(inputs(IDS[:8], 60)) == {}
    assert counts(request, "logits")[2] == 8 * ROW, "an LM head of this number of rows exists"


def test_logits_can_be_written_to_an_array(models) -> None:
    compiled = models()
    request, plain = (compiled.create_infer_request() for _ in range(2))
    array = np.zeros((1, 1, VOCABULARY), np.float32)
    request.set_tensor("logits", Tensor(array))
    found = request.infer(inputs(IDS))["logits"]
    assert found is array
    assert np.array_equal(array, plain.infer(inputs(IDS))["logits"])
    assert counts(request, "logits") == (0, ROW, 0)


def test_another_tensor_may_be_set_after_each_inference(models) -> None:
    """Earlier tensors are freed meanwhile; none is written to again."""
    compiled = models()
    request, plain = (compiled.create_infer_request() for _ in range(2))
    context = compiled.get_context()
    kept = []
    for turn in range(4):
        tensor = context.create_tensor("f32", (1, 1, VOCABULARY))
        request.set_tensor("logits", tensor)
        step = inputs(np.roll(IDS, turn))
        request.infer(step)
        assert np.array_equal(tensor.data, plain.infer(step)["logits"])
        kept.append((tensor, tensor.data.copy()) if turn % 2 else None)
        del tensor
        gc.collect()
    for pair in kept:
        assert pair is None or np.array_equal(pair[0].data, pair[1])


def test_tensors_that_do_not_fit_are_rejected(models) -> None:
    compiled = models()
    request, context = compiled.create_infer_request(), compiled.get_context()

    def made(side: str, element: str, *shape: int) -> Any:
        properties = {"MEM_TYPE": "L0_INTERNAL_BUF", "TENSOR_TYPE": side}
        return context.create_tensor(element, shape, properties)

    with pytest.raises(RemoteError, match=r"'input_ids' is an input; .*TENSOR_TYPE OUTPUT"):
        request.set_tensor("input_ids", made("OUTPUT", "i64", 1, 60))
    with pytest.raises(RemoteError, match=r"'logits' is an output; .*TENSOR_TYPE INPUT"):
        request.set_tensor("logits", made("INPUT", "f32", 1, 1, VOCABULARY))
    for element, *shape in (("f16", 1, 1, 97), ("f32", 1, 1, 96), ("f32", 97)):
        with pytest.raises(TensorError, match=r"logits is f32 \[B, n, 97\], not"):
            request.set_tensor("logits", made("BINDED", element, *shape))
    with pytest.raises(TensorError, match="2 rows; an inference returns at most 1"):
        request.set_tensor("logits", made("BINDED", "f32", 1, 2, 97))
    frozen = np.zeros((1, 1, VOCABULARY), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(TensorError, match="output 'logits': the array is read-only"):
        request.set_tensor("logits", frozen)
    for name in ("inputs_embeds", "nothing"):
        with pytest.raises(TensorError, match=f"no input '{name}'; the inputs are input_ids"):
            request.set_tensor(name, made("BINDED", "f32", 1, 60, 32))
        with pytest.raises(TensorError, match=f"no input '{name}'"):
            request.infer(inputs(IDS) | {name: IDS})
    with pytest.raises(TensorError, match="is not a tensor; pass a Tensor, a RemoteTensor"):
        request.infer(inputs(IDS) | {"input_ids": [[1, 2]]})  # pyright: ignore[reportArgumentType]
    ids = made("INPUT", "i32", 1, 60)
    with pytest.raises(TensorError, match=r"input_ids is i32 \[1, 60\], not i64"):
        request.infer(inputs(IDS) | {"input_ids": ids})
    assert request.infer(inputs(IDS))["logits"].shape == (1, 1, VOCABULARY)


def test_freed_memory_is_detected_before_any_effect(models) -> None:
    compiled = models()
    request, context = compiled.create_infer_request(), compiled.get_context()
    request.infer(inputs(IDS))
    handle = context.get_params()["L0_CONTEXT"]
    for name, element, shape in (
        ("input_ids", "i64", (1, 1)),
        ("logits", "f32", (1, 1, VOCABULARY)),
    ):
        memory = ze.zeMemAllocHost(handle, 4096)
        properties = {"MEM_TYPE": "SHARED_BUF", "MEM_HANDLE": memory}
        request.set_tensor(name, context.create_tensor(element, shape, properties))
        ze.zeMemFree(handle, memory)
        step = inputs(IDS[:1], 60)
        if name == "input_ids":
            del step["input_ids"]
        with pytest.raises(RemoteError, match="was freed"):
            request.infer(step)
        assert int(request.query_state()[-1].state.data[0]) == 60


def test_nothing_is_set_while_a_request_runs(models) -> None:
    compiled = models()
    request = compiled.create_infer_request()
    tensor = compiled.get_context().create_tensor("f32", (1, 1, VOCABULARY))
    request._run._claim(object())
    for act in (
        lambda: request.set_tensor("logits", tensor),
        lambda: request.set_tensor("input_ids", IDS[None]),
        lambda: request.get_tensor("logits"),
    ):
        with pytest.raises(RequestBusy):
            act()


steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["none", *MAKERS]),
        st.sampled_from(["none", *MAKERS]),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(plan=steps)
def test_any_mixture_of_bindings_returns_the_same_logits(models, plan) -> None:
    """Two conversations take turns, each with other bindings each time."""
    compiled = models(**SEVERAL)
    context = compiled.get_context()
    both = [compiled.create_infer_request() for _ in range(2)]
    plain = [compiled.create_infer_request() for _ in range(2)]
    past = [0, 0]
    for who, source, target, rows in plan:
        count = rows if past[who] else 30
        step = inputs(IDS[:count], past[who])
        expected = plain[who].infer(step)["logits"]
        given: dict[str, Any] = {
            name: values if source == "none" else remote(context, values, source)
            for name, values in step.items()
        }
        values = np.empty_like(expected)
        if target == "none":
            tensor: Any = Tensor(values)
        else:
            tensor = MAKERS[target](context, "f32", expected.shape)
        both[who].set_tensor("logits", tensor)
        both[who].infer(given)
        if target != "none":
            tensor.copy_to(values)
        assert np.array_equal(values, expected)
        past[who] += count
