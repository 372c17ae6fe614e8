"""Copies and in-place uses of tensors, by the counters and in the memory itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer import ze
from npuw_layer import Core, RemoteContext, Tensor, page_aligned_bytes
from npuw_layer.errors import RemoteError, TensorError

GAIN, IDS, SCORES, CODES = 4 * 16 * 4, 4 * 8, 4 * 8 * 4, 4 * 16
"""Bytes of the classifier's inputs and outputs."""


def counts(request, name: str) -> tuple[int, int, int]:
    """Return the bytes copied in, copied out and used in place."""
    found = request.transfers.of(name)
    return found.host_to_device, found.device_to_host, found.in_place


def test_host_tensors_are_copied_at_each_inference(classify) -> None:
    """Intel's KB 000101553 states this for tensors that are not remote."""
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    scores = np.zeros((4, 8), np.float32)
    request.set_tensor("gain", Tensor(inputs["gain"]))
    request.set_tensor("scores", Tensor(scores))
    for turn in (1, 2, 3):
        request.infer()
        assert counts(request, "gain") == (turn * GAIN, 0, 0)
        assert counts(request, "scores") == (0, turn * SCORES, 0)


def test_a_host_tensor_is_read_when_the_inference_runs(classify, check_alike) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    gain = np.zeros_like(inputs["gain"])
    request.set_tensor("gain", gain)
    gain[...] = inputs["gain"]
    check_alike(request.infer({"ids": inputs["ids"]}), classify.interpreter().run(inputs))


def test_remote_tensors_are_never_copied(classify) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    context = classify.compiled.get_context()
    for port in (*classify.compiled.inputs, *classify.compiled.outputs):
        tensor = context.create_tensor(port.element_type, port.shape)
        if port.is_input:
            tensor.copy_from(inputs[port.any_name])
        request.set_tensor(port, tensor)
    for turn in (1, 2, 3):
        assert request.infer() == {}
        assert request.transfers.host_to_device == request.transfers.device_to_host == 0
        assert request.transfers.in_place == turn * (GAIN + IDS + SCORES + CODES)


def test_the_requests_own_tensors_are_used_in_place(classify, check_alike) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    for name, values in inputs.items():
        request.get_tensor(name).data[...] = values
    request.start_async()
    request.wait()
    expected = classify.interpreter().run(inputs)
    check_alike({name: request.get_tensor(name).data for name in expected}, expected)
    assert request.transfers.host_to_device == request.transfers.device_to_host == 0
    assert request.transfers.in_place == GAIN + IDS + SCORES + CODES


def test_values_passed_to_infer_are_copied_once(classify) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    request.infer(inputs)
    assert counts(request, "gain") == (GAIN, 0, 0)
    assert counts(request, "scores") == (0, SCORES, 0)
    request.infer(share_outputs=True)
    assert counts(request, "gain") == (GAIN, 0, GAIN)
    assert counts(request, "scores") == (0, SCORES, SCORES)


def test_the_device_reads_and_writes_the_callers_memory(classify) -> None:
    """Only the caller's own pages hold the result."""
    context = classify.compiled.get_context()
    gain_pages, score_pages = page_aligned_bytes(GAIN), page_aligned_bytes(SCORES)
    places = {
        "gain": ("f32", (4, 16), gain_pages, "INPUT"),
        "scores": ("f32", (4, 8), score_pages, "OUTPUT"),
    }
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    for name, (element, shape, pages, side) in places.items():
        properties = {"MEM_TYPE": "CPU_VA", "MEM_HANDLE": pages, "TENSOR_TYPE": side}
        request.set_tensor(name, context.create_tensor(element, shape, properties))
    request.infer({"ids": inputs["ids"]})
    assert not score_pages.any()
    gain_pages[:GAIN] = inputs["gain"].view(np.uint8).reshape(-1)  # the request is not notified
    request.infer()
    expected = classify.interpreter().run(inputs)["scores"]
    found = score_pages[:SCORES].view(np.float32).reshape(4, 8)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_another_tensor_may_be_bound_after_each_inference(classify) -> None:
    request, context = classify.compiled.create_infer_request(), classify.compiled.get_context()
    interpreter = classify.interpreter()
    for seed in range(3):
        inputs = classify.inputs(seed)
        gain, scores = context.create_tensor("f32", (4, 16)), context.create_tensor("f32", (4, 8))
        gain.copy_from(inputs["gain"])
        request.set_tensor("scores", scores)
        request.infer(inputs | {"gain": gain})
        expected = interpreter.run(inputs)["scores"]
        np.testing.assert_allclose(scores.data, expected, rtol=1e-5, atol=1e-5)


def test_a_tensor_of_another_core_is_copied_and_counted(classify) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    far = Core().get_default_context("NPU")
    gain, scores = far.create_tensor("f32", (4, 16)), far.create_tensor("f32", (4, 8))
    gain.copy_from(inputs["gain"])
    request.set_tensor("gain", gain)
    request.set_tensor("scores", scores)
    request.infer({"ids": inputs["ids"]})
    expected = classify.interpreter().run(inputs)["scores"]
    np.testing.assert_allclose(scores.data, expected, rtol=1e-5, atol=1e-5)
    assert counts(request, "gain") == (GAIN, 0, 0)
    assert counts(request, "scores") == (0, SCORES, 0)
    assert "of another context" in request.execution_report()["gain"]


def test_a_models_context_is_that_of_its_core(classify) -> None:
    ours = classify.core.get_default_context("NPU").get_params()["L0_CONTEXT"]
    assert classify.compiled.get_context().get_params()["L0_CONTEXT"] is ours


def test_the_report_shows_every_tensor_and_the_sums(classify) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    gain = classify.compiled.get_context().create_tensor("f32", (4, 16))
    request.infer(inputs | {"gain": gain})
    report = dict(request.execution_report())
    assert report.pop("blob").startswith("1 compiled in")
    assert report == {
        "inferences": "1",
        "copied host → device": "32 B",
        "copied device → host": "192 B",
        "in place": "256 B",
        "ids": "the request's own memory: 32 B copied in",
        "gain": "L0_INTERNAL_BUF tensor: 256 B in place",
        "scores": "the request's own memory: 128 B copied out",
        "codes": "the request's own memory: 64 B copied out",
    }
    request.transfers.reset()
    assert request.execution_report()["gain"] == "L0_INTERNAL_BUF tensor: nothing yet"


def test_a_remote_tensor_is_bound_only_in_its_direction(classify) -> None:
    request, context = classify.compiled.create_infer_request(), classify.compiled.get_context()

    def made(side: str, shape: tuple[int, ...]) -> Any:
        properties = {"MEM_TYPE": "L0_INTERNAL_BUF", "TENSOR_TYPE": side}
        return context.create_tensor("f32", shape, properties)

    with pytest.raises(RemoteError, match=r"'gain' is an input; .* made with.*OUTPUT"):
        request.set_tensor("gain", made("OUTPUT", (4, 16)))
    with pytest.raises(RemoteError, match=r"'scores' is an output; .* made with.*INPUT"):
        request.set_tensor("scores", made("INPUT", (4, 8)))
    frozen = np.zeros((4, 8), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(TensorError, match="output 'scores': the array is read-only"):
        request.set_tensor("scores", frozen)


# Results for any mixture of tensors.


def of_host(context: RemoteContext, element: str, shape: tuple[int, ...], kind: Any) -> Any:
    del context, element
    return Tensor(np.zeros(shape, kind))


def of_device(context: RemoteContext, element: str, shape: tuple[int, ...], kind: Any) -> Any:
    """Return a tensor in memory that is not host-visible."""
    handle = context.get_params()["L0_CONTEXT"]
    nbytes = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = ze.zeMemAllocDevice(handle, nbytes, 0, handle.device)
    properties = {"MEM_TYPE": "SHARED_BUF", "MEM_HANDLE": memory}
    return context.create_tensor(element, shape, properties)


def of_pages(context: RemoteContext, element: str, shape: tuple[int, ...], kind: Any) -> Any:
    nbytes = int(np.prod(shape)) * np.dtype(kind).itemsize
    properties = {"MEM_TYPE": "CPU_VA", "MEM_HANDLE": page_aligned_bytes(nbytes)}
    return context.create_tensor(element, shape, properties)


MAKERS: dict[str, Callable[..., Any]] = {
    "host": of_host,
    "internal": lambda context, element, shape, _: context.create_tensor(element, shape),
    "device": of_device,
    "pages": of_pages,
    "another Core's": lambda _, element, shape, __: (
        Core().get_default_context("NPU").create_tensor(element, shape)
    ),
    "own": lambda *_: None,
}


def read(tensor: Any, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    values = np.zeros(shape, kind)
    if isinstance(tensor, Tensor):
        values[...] = tensor.data
    else:
        tensor.copy_to(values)
    return values


def write(tensor: Any, values: np.ndarray) -> None:
    if isinstance(tensor, Tensor):
        tensor.data[...] = values
    else:
        tensor.copy_from(values)


KINDS = {"i64": np.int64, "f32": np.float32, "i8": np.int8}

turns = st.fixed_dictionaries(
    {name: st.sampled_from(sorted(MAKERS)) for name in ("ids", "gain", "scores", "codes")}
)


@settings(max_examples=12, deadline=None)
@given(plan=st.lists(turns, min_size=1, max_size=4))
def test_any_mixture_of_tensors_gives_the_same_results(classify, plan) -> None:
    """Bindings change between inferences, and so do the values."""
    request, interpreter = classify.compiled.create_infer_request(), classify.interpreter()
    context = classify.compiled.get_context()
    for seed, kinds in enumerate(plan):
        inputs = classify.inputs(seed)
        for port in (*classify.compiled.inputs, *classify.compiled.outputs):
            kind = KINDS[port.element_type]
            made = MAKERS[kinds[port.any_name]](context, port.element_type, port.shape, kind)
            if made is not None:
                request.set_tensor(port, made)
            if port.is_input:
                write(request.get_tensor(port), inputs[port.any_name])
        request.start_async()
        request.wait()
        expected = interpreter.run(inputs)
        for port in classify.compiled.outputs:
            found = read(request.get_tensor(port), port.shape, KINDS[port.element_type])
            np.testing.assert_allclose(found, expected[port.any_name], rtol=1e-5, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(
    moves=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["infer", "reset", *sorted(MAKERS)])),
        min_size=3,
        max_size=14,
    )
)
def test_interleaved_requests_do_not_disturb_one_another(recur, moves) -> None:
    """Three requests run in turn, each with its state, bindings, and an interpreter to compare."""
    requests = [recur.compiled.create_infer_request() for _ in range(3)]
    interpreters = [recur.interpreter() for _ in range(3)]
    context = recur.compiled.get_context()
    for seed, (who, what) in enumerate(moves):
        request, interpreter = requests[who], interpreters[who]
        if what == "reset":
            request.reset_state()
            interpreter.reset()
        elif what == "infer":
            inputs = recur.inputs(seed)
            write(request.get_tensor("x"), inputs["x"])
            request.infer()
            found = read(request.get_tensor("y"), (4, 16), np.float32)
            expected = interpreter.run(inputs)["y"]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        else:
            for name in ("x", "y"):
                made = MAKERS[what](context, "f32", (4, 16), np.float32)
                if made is not None:
                    request.set_tensor(name, made)


def test_an_output_of_one_model_is_the_input_of_the_next(recur) -> None:
    """Two requests share a tensor in device memory; the host copies nothing."""
    first, second = (recur.compiled.create_infer_request() for _ in range(2))
    between = recur.compiled.get_context().create_tensor("f32", (4, 16))
    first.set_output_tensor(between)
    second.set_input_tensor(between)
    interpreters = [recur.interpreter() for _ in range(2)]
    for turn in range(3):
        x = recur.inputs(turn)
        first.infer(x)
        found = second.infer()["y"]
        middle = interpreters[0].run(x)["y"]
        expected = interpreters[1].run({"x": middle})["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert counts(second, "x") == (0, 0, 3 * between.byte_size)
    assert counts(first, "y") == (0, 0, 3 * between.byte_size)
