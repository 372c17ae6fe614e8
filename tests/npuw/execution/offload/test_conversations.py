"""Conversations with a model whose weights exceed the device's memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from compiler_layer.partition.compiled import LITERAL_PREFIX
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer import Core
from npuw_layer.backends.level_zero_copies import RecordedCopies
from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.errors import DeviceError, InferenceCancelled, ModelError, OptionError

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
CHUNKED = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 64, "NPUW_LLM_GENERATE_PYRAMID_STEPS": "96,192"}
PROMPT = [3, 14, 15, 92, 65, 35, 89, 79]


def story(talk) -> np.ndarray:
    """Return all logits of a prompt of two chunks, steps into the next variant, and a rewind."""
    said = [talk.tell(np.arange(90) % 97)]
    said += [talk.tell([token]) for token in PROMPT]
    said += [talk.tell(PROMPT[:1], back=5), talk.tell(PROMPT[1:3])]
    return np.array(said)


@pytest.fixture(scope="module")
def whole(talks, tall) -> np.ndarray:
    return story(talks(tall, **CHUNKED))


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_WEIGHTS_OFFLOAD": "SYNC"},
        {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
        {"NPUW_WEIGHTS_OFFLOAD": "ASYNC", "NPUW_WEIGHTS_RESERVED": 3},
        {"NPUW_WEIGHTS_OFFLOAD": "ASYNC", "NPUW_WEIGHTS_BUDGET": "200KiB"},
        {"NPUW_WEIGHTS_OFFLOAD": "SYNC", "NPUW_WEIGHTS_BUDGET": "1GiB"},
        {"NPUW_WEIGHTS_OFFLOAD": "ASYNC", "NPUW_FOLD": "NO"},
    ],
)
def test_every_logit_equals_that_without_offload(talks, tall, whole, options):
    assert np.array_equal(story(talks(tall, **CHUNKED, **options)), whole)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [{"INFERENCE_PRECISION_HINT": "f16"}, {"KV_CACHE_PRECISION": "i8"}]
)
def test_the_mode_of_copies_does_not_change_logits_in_any_precision(talks, tall, kind):
    """Hidden values in f16 are rounded between layers, which fused kernels may avoid."""
    ways = ("SYNC", "ASYNC")
    sync, ahead = (story(talks(tall, **CHUNKED, **kind, NPUW_WEIGHTS_OFFLOAD=way)) for way in ways)
    assert np.array_equal(sync, ahead)
    whole = story(talks(tall, **CHUNKED, **kind))
    assert np.abs(ahead - whole).max() < 0.02 * np.abs(whole).max()


def test_conversations_take_turns_and_stay_independent(talks, tall, whole):
    options = {**CHUNKED, "NPUW_WEIGHTS_OFFLOAD": "ASYNC"}
    told: dict[int, np.ndarray] = {}

    def tell(number: int) -> None:
        told[number] = story(talks(tall, **options))

    talks(tall, **options)  # compiled before threads request it
    threads = [threading.Thread(target=tell, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(told[number], whole) for number in range(3))


@pytest.mark.parametrize("how", ["is cancelled", "fails"])
def test_a_cancelled_or_failed_inference_affects_no_other(talks, tall, whole, monkeypatch, how):
    """A failed pass leaves the slots in the state of the middle of its layers."""
    options = {**CHUNKED, "NPUW_WEIGHTS_OFFLOAD": "ASYNC"}
    steady, fickle = talks(tall, **options), talks(tall, **options)
    over = threading.Event()
    ended: list[Exception] = []

    def end_early() -> None:
        tokens = np.arange(120)[None] % 97
        places = np.arange(120)[None]
        fed = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "position_ids": places,
        }
        while not (over.is_set() and ended):
            fickle.reset()
            try:
                if how == "fails":
                    fickle.request.infer(fed)
                else:
                    fickle.request.start_async(fed)
                    over.wait(draw.uniform(0, 0.05))  # in the middle of a chunk
                    fickle.request.cancel()
                    fickle.request.wait()
            except (InferenceCancelled, DeviceError) as error:
                ended.append(error)

    thread = threading.Thread(target=end_early)
    run, draw = RecordedProgram.run, np.random.default_rng(4)

    def run_or_fail(program: RecordedProgram) -> None:
        if how == "fails" and threading.current_thread() is thread and draw.random() < 0.15:
            raise DeviceError("this layer failed")
        run(program)

    with monkeypatch.context() as patched:
        patched.setattr(RecordedProgram, "run", run_or_fail)
        thread.start()
        try:
            told = story(steady)
        finally:
            over.set()
            thread.join()
    assert np.array_equal(told, whole)
    assert ended
    fickle.reset()
    assert np.array_equal(story(fickle), whole)


@pytest.mark.long
def test_weights_use_no_more_memory_than_reported(tall, monkeypatch):
    bound: dict[int, int] = {}
    bind = RecordedProgram.bind

    def watch(self, name, memory, offset) -> None:
        if name.startswith((WEIGHT_PREFIX, LITERAL_PREFIX)):
            bound[memory.address] = memory.data.size
        bind(self, name, memory, offset)

    monkeypatch.setattr(RecordedProgram, "bind", watch)
    compiled = Core().compile_model(tall, "NPU", SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"})
    for _ in range(2):
        compiled.create_infer_request()
    report = compiled.offload_report()
    assert sum(bound.values()) == report.device_bytes
    assert report.device_bytes < report.weight_bytes / 2
    assert (report.layers, report.moving, report.slots) == (7, 7, 2)


@pytest.mark.long
def test_the_report_has_the_copies(tall):
    compiled = Core().compile_model(tall, "NPU", SMALL | {"NPUW_WEIGHTS_OFFLOAD": "SYNC"})
    request = compiled.create_infer_request()
    assert compiled.offload_report().copied_bytes == 0
    tokens = np.array([PROMPT])
    positions = np.arange(len(PROMPT))[None]
    for _ in range(2):
        request.reset_state()
        request.infer(
            {
                "input_ids": tokens,
                "attention_mask": np.ones_like(tokens),
                "position_ids": positions,
            }
        )
    report = compiled.offload_report()
    assert report.copies == 2 * 7
    assert 0.9 * report.layer_bytes < report.copied_bytes / report.copies <= report.layer_bytes
    lines = request.execution_report()
    assert "7 of 7 layers through 2 slots" in lines["weights offload"]
    assert "128 tokens after 0: " in lines["weights offload, simulated"]
    assert report.stages[0].name == "128 tokens after 0"
    for stage in report.stages:
        assert stage.resident.ns < stage.synchronous.ns
        assert stage.resident.ns - 1e-6 <= stage.asynchronous.ns <= stage.synchronous.ns
        assert stage.synchronous.stall_ns > 0
    assert Core().compile_model(tall, "NPU", SMALL).offload_report() is None


def test_a_failed_copy_fails_only_one_inference(talks, tall, whole, monkeypatch):
    talk = talks(tall, **CHUNKED, NPUW_WEIGHTS_OFFLOAD="ASYNC")
    wait = RecordedCopies.wait
    left = [4]

    def fail(self) -> None:
        left[0] -= 1
        if not left[0]:
            raise DeviceError("the link broke")
        wait(self)

    monkeypatch.setattr(RecordedCopies, "wait", fail)
    with pytest.raises(DeviceError, match="the link broke"):
        story(talk)
    monkeypatch.undo()
    talk.reset()
    assert np.array_equal(story(talk), whole)


@pytest.mark.long
def test_a_warm_start_compiles_nothing(tall, tmp_path):
    options = SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC", "CACHE_DIR": str(tmp_path)}
    first = Core().compile_model(tall, "NPU", options)
    assert not first.get_property("LOADED_FROM_CACHE")
    # Budgets are run-time options: programs are the same.
    second = Core().compile_model(tall, "NPU", options | {"NPUW_WEIGHTS_BUDGET": "1MiB"})
    assert second.get_property("LOADED_FROM_CACHE")
    whole = Core().compile_model(tall, "NPU", SMALL | {"CACHE_DIR": str(tmp_path)})
    assert not whole.get_property("LOADED_FROM_CACHE")


@pytest.mark.long
def test_models_loaded_after_the_first_conversation_are_rejected(tall):
    """Slots have the size of the layers that were loaded before."""
    compiled = Core().compile_model(tall, "NPU", SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"})
    compiled.create_infer_request()
    whole = compiled._compiled
    with pytest.raises(DeviceError, match="before the first conversation"):
        whole.device.load(next(iter(whole.programs.values())))


class TestRefusals:
    @pytest.mark.long
    def test_the_error_of_a_budget_below_two_layers_has_the_needed_bytes(self, tall):
        least = Core().compile_model(tall, "NPU", SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"})
        needed = least.offload_report().device_bytes
        options = SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC", "NPUW_WEIGHTS_BUDGET": needed - 1}
        with pytest.raises(OptionError, match=f"{needed} bytes are needed"):
            Core().compile_model(tall, "NPU", options)
        options["NPUW_WEIGHTS_BUDGET"] = needed
        assert Core().compile_model(tall, "NPU", options).offload_report().slots == 2

    def test_a_model_without_repeated_layers_cannot_be_offloaded(self, tiny):
        why = "NPUW_WEIGHTS_OFFLOAD = ASYNC: .* at least four times.*; set it to NO"
        with pytest.raises(ModelError, match=why):
            Core().compile_model(tiny, "NPU", SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"})

    @pytest.mark.matrix
    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"NPUW_DEVICES": "CPU"}, "cannot copy during computation"),
            ({"NPUW_ACC_CHECK": "YES"}, "NPUW_ACC_CHECK at NO"),
            ({"CACHE_MODE": "OPTIMIZE_SPEED"}, "OPTIMIZE_SIZE"),
            ({"NPUW_WEIGHTS_BANK": "ours"}, "NPUW_WEIGHTS_BANK"),
            ({"NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}, "NPUW_WEIGHTS_BANK"),
            ({"NPUW_WEIGHTS_OFFLOAD": "MAYBE"}, "NPUW_WEIGHTS_OFFLOAD = 'MAYBE'"),
            ({"NPUW_WEIGHTS_BUDGET": "much"}, "NPUW_WEIGHTS_BUDGET = 'much'"),
            ({"NPUW_WEIGHTS_RESERVED": 0}, "NPUW_WEIGHTS_RESERVED = 0"),
        ],
    )
    def test_contradictory_options_are_rejected(self, tall, options, why):
        with pytest.raises(OptionError, match=why):
            Core().compile_model(tall, "NPU", SMALL | {"NPUW_WEIGHTS_OFFLOAD": "SYNC"} | options)
