"""Forms of inputs and results in OpenVINO, accepted by all kinds of models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.npuw.conftest import SMALL
from tests.npuw.kinds.static.conftest import EXACT, classifier, recurrent

from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.api.results import Results
from npuw_layer.errors import ModelError, NpuwError, OptionError, TensorError

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
DRAW = np.random.default_rng(4)
KINDS = ("language", "whisper", "text", "static")


@dataclass(frozen=True)
class Kind:
    """A compiled model, and inputs of an inference by name, in the model's order."""

    compiled: Any
    inputs: dict[str, np.ndarray]

    def begin(self) -> Any:
        return self.compiled.create_infer_request()

    def expected(self) -> Results:
        return self.begin().infer(self.inputs)


@pytest.fixture(scope="module")
def kinds(
    tiny: Path, restored: Callable[[Path, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Kind]:
    ids = DRAW.integers(0, 97, (1, 5))
    ones = np.ones((1, 5), np.int64)
    known: dict[str, Kind] = {}

    def made(name: str) -> Kind:
        compile_model = Core().compile_model
        if name == "language":
            inputs = {"input_ids": ids, "attention_mask": ones, "position_ids": np.arange(5)[None]}
            return Kind(compile_model(tiny, "NPU", SMALL), inputs)
        if name == "text":
            short = SMALL | {"NPUW_TEXT_RERANK": "YES"}
            del short["NPUW_LLM_ENABLE_CONTINUOUS_PREFILL"]
            inputs = {"input_ids": ids, "attention_mask": ones, "position_ids": np.arange(5)[None]}
            return Kind(compile_model(tiny, "NPU", short), inputs)
        if name == "whisper":
            audio = DRAW.standard_normal((1, 40, 32)).astype(np.float32)
            options = {"NPUW_WHISPER": "YES", "NPUW_WHISPER_EOS_TOKEN": 256}
            options |= {"NPUW_WHISPER_ENCODER_LEN": 40}
            decoder = restored(GOLDENS / "whisper", "decoder_fp16")
            inputs = {"input_ids": np.array([[257]]), "encoder_hidden_states": audio}
            return Kind(compile_model(decoder, "NPU", options), inputs)
        path = tmp_path_factory.mktemp("static") / "model.xml"
        write_ir(classifier(), path)
        gain = DRAW.standard_normal((4, 16)).astype(np.float32)
        inputs = {"ids": np.array([1, 3, 5, 7]), "gain": gain}
        return Kind(compile_model(path, "NPU", EXACT | {"NPU_USE_NPUW": "NO"}), inputs)

    def give(name: str) -> Kind:
        if name not in known:
            known[name] = made(name)
        return known[name]

    return give


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, kinds: Callable[[str], Kind]) -> Kind:
    return kinds(request.param)


def same(found: Results, expected: Results) -> bool:
    return [*found] == [*expected] and all(np.array_equal(found[n], expected[n]) for n in expected)


def begin_and_wait(request: Any, given: Any) -> None:
    request.start_async(given)
    request.wait()


def foreign(values: np.ndarray) -> ov.Tensor:
    return ov.Tensor(values)


FORMS: dict[str, Callable[[Kind], Any]] = {
    "by name": lambda kind: kind.inputs,
    "by number": lambda kind: dict(enumerate(kind.inputs.values())),
    "by port": lambda kind: {kind.compiled.input(name): v for name, v in kind.inputs.items()},
    "as a list": lambda kind: [*kind.inputs.values()],
    "as a tuple": lambda kind: (*kind.inputs.values(),),
    "as OpenVINO's tensors": lambda kind: [foreign(v) for v in kind.inputs.values()],
}


INTEGERS = ("i4", "i1", "u1", "i2", "u2", "u4", "i8", "u8")


@pytest.mark.matrix
@pytest.mark.parametrize("type_", INTEGERS)
def test_arrays_of_any_integers_are_accepted_as_openvino_does(
    kinds: Callable[[str], Kind], type_: str
) -> None:
    kind = kinds("language")
    given = {name: values.astype(type_) for name, values in kind.inputs.items()}
    expected = kind.expected()
    assert same(kind.begin().infer(given), expected)
    assert same(kind.begin().infer([*given.values()]), expected)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((1, 5), 1 << 63, np.uint64), "input_ids: uint64 from .* does not fit i64"),
        (np.ones((1, 5), np.float32), "input_ids is float32"),
        (np.ones((1, 5), bool), "input_ids is bool"),
        (foreign(np.ones((1, 5), np.int32)), "input_ids is int32"),
    ],
)
def test_other_ids_are_rejected(kinds: Callable[[str], Kind], values: Any, message: str) -> None:
    kind = kinds("language")
    with pytest.raises(TensorError, match=message):
        kind.begin().infer(kind.inputs | {"input_ids": values})


@pytest.mark.matrix
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_inputs_return_the_same_results(kind: Kind, form: str) -> None:
    given, expected = FORMS[form](kind), kind.expected()
    assert same(kind.begin().infer(given), expected)
    assert same(kind.begin()(given), expected)
    assert same(kind.compiled.infer_new_request(given), expected)
    request = kind.begin()
    request.start_async(given)
    request.wait()
    assert same(request.results, expected)


def test_ports_of_an_openvino_model_select_inputs(kinds: Callable[[str], Kind]) -> None:
    kind = kinds("whisper")

    @dataclass(frozen=True)
    class ConstOutput:
        any_name: str

    given = {ConstOutput(name): values for name, values in kind.inputs.items()}
    assert same(kind.begin().infer(given), kind.expected())


def test_results_are_found_by_name_number_and_port(kind: Kind) -> None:
    found = kind.expected()
    for number, port in enumerate(kind.compiled.outputs):
        expected = found[port.any_name]
        assert found[number] is expected
        assert found[port] is expected
        assert found.to_tuple()[number] is expected
        assert found.to_dict()[port.any_name] is expected
        assert found.names()[number] == {port.any_name}
        assert port in found
        assert found.get("no such output") is None
    assert [*found] == [port.any_name for port in kind.compiled.outputs]
    assert len(found) == len(kind.compiled.outputs)


@pytest.mark.parametrize("key", ["no such output", 17, None])
def test_a_missing_result_is_a_key_error_that_lists_the_results(kind: Kind, key: Any) -> None:
    first = kind.compiled.outputs[0].any_name
    with pytest.raises(KeyError) as raised:
        kind.expected()[key]
    assert isinstance(raised.value, NpuwError)
    assert first in str(raised.value)


def test_tensors_are_set_and_read_by_number_and_port(kind: Kind) -> None:
    request = kind.begin()
    for number, values in enumerate(kind.inputs.values()):
        if number % 2:
            request.set_input_tensor(number, values)
        else:
            request.set_tensor(kind.compiled.input(number), foreign(values))
    found, expected = request.infer(), kind.expected()
    assert same(found, expected)
    for number, values in enumerate(kind.inputs.values()):
        assert np.array_equal(request.get_input_tensor(number).data, values)
    for number, port in enumerate(kind.compiled.outputs):
        assert np.array_equal(request.get_output_tensor(number).data, expected[number])
        assert np.array_equal(request.get_tensor(port).data, expected[number])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda kind: [*kind.inputs.values()] * 9, "tensors for"),
        (lambda kind: next(iter(kind.inputs.values())), "select one by"),
        (lambda kind: 3, "the scalar 3 is not a tensor"),
        (lambda kind: {0: 2.5}, "the scalar 2.5 is not a tensor"),
        (lambda kind: [np.float32(1)], "the scalar .* is not a tensor"),
        (lambda kind: [None], "None is not a tensor; pass a Tensor, a RemoteTensor or an array"),
        (lambda kind: "input_ids", "is not a tensor"),
        (lambda kind: {17: kind.inputs}, "no input 17; the model has 0: "),
        (lambda kind: {"no_such": np.ones(1)}, "no input 'no_such'"),
        (lambda kind: {None: np.ones(1)}, "no input None"),
        (lambda kind: [np.ones((7, 7, 7), "f2"), *[*kind.inputs.values()][1:]], "not"),
    ],
)
def test_invalid_inputs_are_rejected(kind: Kind, wrong: Callable[[Kind], Any], told: str) -> None:
    request, given = kind.begin(), wrong(kind)
    with pytest.raises(TensorError, match=told):
        request.infer(given)
    with pytest.raises(TensorError, match=told):
        begin_and_wait(request, given)
    assert same(request.infer(kind.inputs), kind.expected())


def test_a_started_inference_is_independent_of_later_writes_to_its_inputs(kind: Kind) -> None:
    given = {name: values.copy() for name, values in kind.inputs.items()}
    request = kind.begin()
    request.start_async(given)
    for values in given.values():
        values[...] = 0
    request.wait()
    assert same(request.results, kind.expected())


def test_a_model_with_one_input_accepts_a_single_tensor(tmp_path: Path) -> None:
    write_ir(recurrent(), tmp_path / "model.xml")
    compiled = Core().compile_model(tmp_path / "model.xml", "NPU", EXACT)
    x = DRAW.standard_normal((4, 16)).astype(np.float32)
    expected = compiled.create_infer_request().infer({"x": x})
    assert same(compiled.create_infer_request().infer(x), expected)
    assert same(compiled.create_infer_request().infer(foreign(x)), expected)


def test_a_called_compiled_model_keeps_its_state(kinds: Callable[[str], Kind]) -> None:
    kind = kinds("language")
    compiled = Core().compile_model(kind.compiled._compiled.sources.files.folder, "NPU", SMALL)
    compiled(kind.inputs)
    step = {
        "input_ids": np.array([[5]]),
        "attention_mask": np.ones((1, 6), np.int64),
        "position_ids": np.array([[5]]),
    }
    request = kind.begin()
    request.infer(kind.inputs)
    assert same(compiled(step), request.infer(step))


def test_compile_model_accepts_the_keywords_of_openvino(tiny: Path) -> None:
    compiled = Core().compile_model(model=tiny, device_name="NPU", config=SMALL)
    assert compiled.get_property("NPUW_LLM_MAX_PROMPT_LEN") == 128
    blob = compiled.export_model()
    imported = Core().import_model(model=blob, config={"WEIGHTS_PATH": tiny})
    assert imported.get_property("NPUW_LLM_MAX_PROMPT_LEN") == 128


def test_an_invalid_model_or_configuration_is_rejected(tiny: Path) -> None:
    with pytest.raises(ModelError, match="3 is not a path; pass the model's IR or folder, or"):
        Core().compile_model(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="is not a configuration; pass a dict of options"):
        Core().compile_model(tiny, "NPU", [("NPU_TILES", 2)])  # pyright: ignore[reportArgumentType]
