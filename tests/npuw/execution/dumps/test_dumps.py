"""NPUW_DUMP_…: dumped files are the running models and tensors, readable by OpenVINO and NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino.opset13
import pytest
from tests.conftest import GOLDENS
from tests.npuw.faulty_device import FaultyDevice

from compiler_layer.rewriting.state import ASSIGN_PREFIX, READ_PREFIX
from npuw_layer import Core
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.errors import DeviceError, NpuwFault, OptionError
from npuw_layer.options import parse_options
from npuw_layer.options.reports import selected

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
NUMPY = {"i64": np.int64, "f32": np.float32, "boolean": np.bool_}


def say(model: Path, folder: Path, **options: Any) -> None:
    """Read a prompt of 5 tokens, then generate from two more."""
    config = SMALL | {"NPUW_DUMP_SUBS_DIR": str(folder)} | options
    request = Core().compile_model(model, "NPU", config).create_infer_request()
    for said, ids in ((0, [1, 2, 3, 4, 5]), (5, [6]), (6, [7])):
        total = said + len(ids)
        request.infer(
            {
                "input_ids": np.array([ids]),
                "attention_mask": np.ones((1, total), np.int64),
                "position_ids": np.arange(said, total)[None],
            }
        )


def names(folder: Path, suffix: str) -> set[str]:
    return {path.name.removesuffix(suffix) for path in folder.glob(f"*{suffix}")}


def tensors(listed: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a list of files, by the names of inputs or outputs."""
    found: dict[str, np.ndarray] = {}
    for file in listed.read_text().split(";"):
        path = listed.with_name(file)
        element, shape, name = path.with_suffix(".txt").read_text().rstrip().split(" ", 2)
        dims = [int(dim) for dim in shape.strip("[]").split(",") if dim]
        found[name] = np.fromfile(path, NUMPY[element]).reshape(dims)
    return found


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("tiny", {}),
        ("tall", {"NPUW_ONLINE_PIPELINE": "REP"}),
        ("tiny", {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_FOLD": "NO"}),
        ("tiny", {"NPUW_ONLINE_ISOLATE": "ATTN,P:RMSNorm/norm", "NPUW_DEVICES": "CPU"}),
        ("tiny", {"NPUW_DEVICES": "NPU,CPU"}),
    ],
    ids=lambda case: case if isinstance(case, str) else " ".join(case.values()) or "whole",
)
def test_openvino_reproduces_dumped_outputs(request, tmp_path, model, options) -> None:
    """Equal submodels share a program, with different weights; the files have those of each layer.

    Of seven layers, more than two are equal.
    """
    say(
        request.getfixturevalue(model),
        tmp_path,
        NPUW_DUMP_SUBS="YES",
        NPUW_DUMP_IO="YES",
        **options,
    )
    dumped = names(tmp_path, "_ilist.txt")
    assert dumped == names(tmp_path, ".xml") == names(tmp_path, "_olist.txt")
    assert {name.rpartition("_")[0] for name in dumped} == {"prefill_64", "generate_128", "lm_head"}
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    for name in dumped:
        submodel = openvino.Core().compile_model(tmp_path / f"{name}.xml", "CPU", exact)
        given = tensors(tmp_path / f"{name}_ilist.txt")
        wanted = tensors(tmp_path / f"{name}_olist.txt")
        found = submodel(given)
        assert wanted.keys() == {port.any_name for port in submodel.outputs}
        for output, values in wanted.items():
            scale = max(1, np.abs(values).max())
            assert np.abs(found[output] - values).max() < 1e-5 * scale, (name, output)


@pytest.mark.long
def test_only_selected_submodels_are_written(tall, tmp_path) -> None:
    say(tall, tmp_path, NPUW_ONLINE_PIPELINE="REP", NPUW_DUMP_SUBS="1", NPUW_DUMP_IO="0,last")
    assert {name.split("_")[-1] for name in names(tmp_path, ".xml")} == {"1"}
    assert {name for name in names(tmp_path, "_ilist.txt") if name.startswith("generate")} == {
        "generate_128_0",
        "generate_128_8",
    }


def test_every_run_is_kept_on_request(tiny, tmp_path) -> None:
    say(tiny, tmp_path, NPUW_DUMP_IO="YES", NPUW_DUMP_IO_ITERS="YES")
    runs = sorted(name for name in names(tmp_path, "_ilist.txt") if name.startswith("generate"))
    assert runs == ["generate_128_0_iter_0000", "generate_128_0_iter_0001"]
    ids = [tensors(tmp_path / f"{run}_ilist.txt")["input_ids"][0, -1] for run in runs]
    assert ids == [6, 7]


def test_a_static_model_is_written_before_it_is_cut(tiny, tmp_path) -> None:
    say(tiny, tmp_path, NPUW_DUMP_FULL="YES", NPUW_ONLINE_PIPELINE="REP")
    assert names(tmp_path, ".xml") == {"prefill_64", "generate_128", "lm_head"}
    model = openvino.Core().read_model(tmp_path / "generate_128.xml")
    assert not model.is_dynamic()
    assert not model.get_sinks()
    for ports, prefix in ((model.inputs, READ_PREFIX), (model.outputs, ASSIGN_PREFIX)):
        assert sum(port.any_name.startswith(prefix) for port in ports) == 4


@pytest.fixture
def sharing_heads(restored, grouped) -> dict[str, Path]:
    """Return models whose queries share K and V, and whose shapes leave dimensions dynamic."""
    falcon = restored(GOLDENS / "exported", "falcon_fp16")
    return {"falcon": falcon} | {kind: grouped / f"{kind}.xml" for kind in ("smooth",)}


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["falcon", "smooth"])
def test_shared_key_heads_are_counted_in_an_uncut_model(sharing_heads, tmp_path, name) -> None:
    """OpenVINO computes the device's results for the step after the prompt."""
    say(sharing_heads[name], tmp_path, NPUW_DUMP_FULL="YES", NPUW_DUMP_IO="YES")
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    whole = openvino.Core().compile_model(tmp_path / "generate_128.xml", "CPU", exact)
    given = tensors(tmp_path / "generate_128_0_ilist.txt")
    wanted = tensors(tmp_path / "generate_128_0_olist.txt")["npuw_output_embed"]
    read = {port.any_name for port in whole.inputs}
    found = whole({port: values for port, values in given.items() if port in read})
    assert sum(port.startswith(READ_PREFIX) for port in read & given.keys()) >= 4
    assert np.abs(found["npuw_output_embed"] - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_a_model_that_cannot_be_compiled_is_written_with_the_reason(tiny, tmp_path) -> None:
    device = FaultyDevice(InterpreterDevice(), refuses="there is no room")
    options = {"NPUW_DUMP_SUBS_ON_FAIL": "last", "NPUW_DUMP_SUBS_DIR": str(tmp_path)}
    with pytest.raises(DeviceError, match="there is no room"):
        Core(device=device).compile_model(tiny, "NPU", SMALL | options)
    assert names(tmp_path, ".xml") == {"failed_prefill_64_0"}
    assert (tmp_path / "failed_prefill_64.txt").read_text() == "there is no room\n"
    openvino.Core().read_model(tmp_path / "failed_prefill_64_0.xml")


def test_models_from_the_cache_are_not_written(tiny, tmp_path) -> None:
    options = {"CACHE_DIR": str(tmp_path / "cache"), "NPUW_DUMP_SUBS": "YES"}
    for folder, written in (
        ("first", {"prefill_64_0", "generate_128_0", "lm_head_0"}),
        ("then", set()),
    ):
        say(tiny, tmp_path / folder, **options)
        assert names(tmp_path / folder, ".xml") == written


def test_a_folder_that_cannot_be_created_is_an_error_that_names_the_option(tiny, tmp_path) -> None:
    (tmp_path / "file").touch()
    for option in ("NPUW_DUMP_SUBS", "NPUW_DUMP_IO"):
        with pytest.raises(NpuwFault, match=rf"{option}: .*file/here: "):
            say(tiny, tmp_path / "file" / "here", **{option: "YES"})


@pytest.mark.parametrize("text", ["yes,0", "first", "-1", "0;1", "²"])
def test_the_error_of_a_malformed_selection_shows_the_syntax(text) -> None:
    with pytest.raises(OptionError, match=r'NPUW_DUMP_IO.*write "YES", "NO" or "0,1,last"'):
        parse_options({"NPUW_DUMP_IO": text})


def test_submodels_are_selected_as_in_npuw() -> None:
    assert selected("YES", 3) == [0, 1, 2]
    assert selected("NO", 3) == selected("", 3) == []
    assert selected("0, last", 3) == [0, 2]
    assert selected("2,1,7,last", 3) == [1, 2]
