"""A pipeline has one KV cache: one generation at a time, and no copies."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import genai_layer
from genai_layer import BusyError, GenAIError, StreamingStatus

pytestmark = [
    pytest.mark.filterwarnings("ignore:start_chat:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:finish_chat:DeprecationWarning"),
]


@pytest.mark.parametrize("act", ["generate", "start_chat", "finish_chat", "__call__"])
def test_a_streamer_that_uses_its_own_pipeline_is_rejected(speaks, act: str) -> None:
    pipe = speaks("hey, u!")
    refusals: list[str] = []

    def streamer(_: str) -> StreamingStatus:
        with pytest.raises(BusyError) as caught:
            getattr(pipe, act)(*(["again"] if act in ("generate", "__call__") else []))
        refusals.append(str(caught.value))
        return StreamingStatus.RUNNING

    assert pipe.generate("hello", streamer=streamer) == pipe.generate("hello")
    assert refusals
    assert "the pipeline is generating; wait for the end" in refusals[0]


def test_another_thread_is_rejected_while_one_generates(speaks) -> None:
    pipe = speaks("hey, u!")
    found: list[BaseException] = []

    def intrude() -> None:
        try:
            pipe.generate("hello")
        except GenAIError as error:
            found.append(error)

    def streamer(_: str) -> None:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()

    pipe.generate("hello", streamer=streamer)
    assert found
    assert all(isinstance(error, BusyError) for error in found)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_pipeline_is_usable_after_a_failed_generation(speaks, error) -> None:
    pipe = speaks("hey, u!")

    def streamer(_: str) -> None:
        raise error

    with pytest.raises(error):
        pipe.generate("hello", streamer=streamer)
    assert pipe.generate("hello")


@pytest.mark.parametrize("act", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_pipeline_cannot_be_copied(speaks, act) -> None:
    with pytest.raises(GenAIError, match="LLMPipeline: a pipeline holds a device's state"):
        act({"kept": speaks("hey")} if act is copy.deepcopy else speaks("hey"))


def test_a_star_import_has_all_public_names() -> None:
    names: dict[str, object] = {}
    exec("from genai_layer import *", names)
    assert {*genai_layer._HOMES, "get_version"} == {*genai_layer.__all__} <= {*names}
