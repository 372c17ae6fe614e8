"""A compiled model in one file: an import returns the same logits, or is rejected."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from driver_layer.support import versions
from npuw_layer import Core
from npuw_layer.errors import (
    BlobError,
    BlobVersionError,
    DeviceError,
    ModelError,
    NpuwError,
    NpuwFault,
    OptionError,
    StateError,
)
from npuw_layer.options import RUN_TIME
from npuw_layer.options.mechanisms import MechanismOptions

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}

BLOBS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 128,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "128,192",
}
"""Options of the blobs of ``conftest``."""

MODES = ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"]


class Named:
    """A path that is not a ``Path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


@pytest.mark.matrix
@pytest.mark.parametrize("mode", MODES)
def test_an_import_next_to_its_exporter_is_exact(exporters, blobs, tiny, speak, mode: str) -> None:
    """NPUW fails here if weights are in the blob."""
    expected = speak(exporters[mode])
    imported = Core().import_model(blobs[mode], "NPU", {"WEIGHTS_PATH": tiny})
    assert np.array_equal(speak(imported), expected)
    assert np.array_equal(speak(exporters[mode]), expected), "the exporter's logits do not change"
    assert not imported.get_property("LOADED_FROM_CACHE")


@pytest.mark.matrix
@pytest.mark.parametrize("mode", MODES)
def test_a_blob_may_be_a_path_a_stream_or_bytes(exporters, blobs, tiny, speak, mode: str) -> None:
    expected, content = speak(exporters[mode]), blobs[mode].read_bytes()
    behind = io.BytesIO(b"something else" + content)
    behind.seek(14)
    with blobs[mode].open("rb") as file:
        paths = (str(blobs[mode]), Named(blobs[mode]))
        for source in (*paths, file, content, memoryview(content), behind):
            imported = Core().import_model(source, "NPU", {"MODEL_PTR": str(tiny)})
            assert np.array_equal(speak(imported), expected)


def test_all_ways_of_exporting_write_the_same_bytes(exporters, blobs, tiny, tmp_path) -> None:
    for mode, compiled in exporters.items():
        stream = io.BytesIO()
        compiled.export_model(stream)
        compiled.export_model(Named(tmp_path / "named"))
        assert stream.getvalue() == compiled.export_model() == blobs[mode].read_bytes()
        assert stream.getvalue() == (tmp_path / "named").read_bytes()
        imported = Core().import_model(blobs[mode], "NPU", {"WEIGHTS_PATH": str(tiny)})
        assert imported.export_model() == stream.getvalue(), "also from an imported model"


def test_cache_mode_selects_whether_the_blob_contains_the_weights(blobs, tiny) -> None:
    weights = (tiny / "model.safetensors").stat().st_size
    size, speed = (blobs[mode].stat().st_size for mode in MODES)
    assert speed - size > weights / 2
    Core().import_model(blobs["OPTIMIZE_SPEED"])
    with pytest.raises(OptionError, match=r"WEIGHTS_PATH .* or MODEL_PTR"):
        Core().import_model(blobs["OPTIMIZE_SIZE"])


def test_weights_are_in_the_blob_once_and_in_device_memory_once(blobs, tiny, speak) -> None:
    """Five programs read them in f16, the checkpoint has f32."""
    weights = (tiny / "model.safetensors").stat().st_size / 2
    size, speed = (blobs[mode].stat().st_size for mode in MODES)
    assert 0.9 * weights < speed - size < 1.1 * weights
    used: list[int] = []
    for mode in MODES:
        imported = Core().import_model(blobs[mode], "NPU", {"WEIGHTS_PATH": str(tiny)})
        speak(imported)
        used.append(imported._compiled.bank.nbytes)
    assert used[1] < 1.1 * weights
    assert used[1] < 1.1 * used[0]


def test_weights_may_be_in_the_blob_for_a_single_stage(tiny, speak) -> None:
    head = {"NPUW_LLM_SHARED_HEAD_CONFIG": {"ENABLE_WEIGHTLESS": "NO"}}
    exported = Core().compile_model(tiny, "NPU", SMALL | head)
    content = exported.export_model()
    others = Core().compile_model(tiny, "NPU", SMALL).export_model()
    assert 97 * 32 * 2 <= len(content) - len(others) < 97 * 32 * 2 + 8192, "the LM head's, in f16"
    with pytest.raises(OptionError, match="WEIGHTS_PATH"):
        Core().import_model(content)
    imported = Core().import_model(content, "NPU", {"WEIGHTS_PATH": str(tiny)})
    assert np.array_equal(speak(imported), speak(exported))
    assert imported.export_model() == content


def test_weights_changed_since_compilation_are_not_exported(tiny, tmp_path) -> None:
    copy = shutil.copytree(tiny, tmp_path / "copy")
    compiled = Core().compile_model(copy, "NPU", SMALL | {"CACHE_MODE": "OPTIMIZE_SPEED"})
    os.utime(copy / "model.safetensors", ns=(1, 1))
    with pytest.raises(ModelError, match="changed after compilation; compile again"):
        compiled.export_model()


@pytest.fixture
def another_blob(tiny, tmp_path) -> bytes:
    """Return the blob of a model with the same shapes and other weights."""
    copy = shutil.copytree(tiny, tmp_path / "another")
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-4096:] = bytes(4096)
    (copy / "model.safetensors").write_bytes(weights)
    mode = {"CACHE_MODE": "OPTIMIZE_SPEED", **BLOBS}
    return Core().compile_model(copy, "NPU", mode).export_model()


def test_blobs_of_other_weights_share_nothing_in_one_bank(
    blobs, another_blob, speak, tmp_path, monkeypatch
) -> None:
    """The blobs have no files that would distinguish them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    bank = {"NPUW_WEIGHTS_BANK": "b", "NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}
    sources = (blobs["OPTIMIZE_SPEED"], another_blob)
    alone = [speak(Core().import_model(source)) for source in sources]
    assert not np.array_equal(*alone)
    together = [Core().import_model(source, "NPU", bank) for source in sources]
    for imported, expected in zip(together, alone, strict=True):
        assert np.array_equal(speak(imported), expected)


def test_a_conversation_saved_with_one_blob_cannot_be_loaded_with_another(
    blobs, another_blob, speak, tmp_path
) -> None:
    ids = np.array([[5, 6, 7]])
    request = Core().import_model(blobs["OPTIMIZE_SPEED"]).create_infer_request()
    request.infer({"input_ids": ids, "attention_mask": ids * 0 + 1, "position_ids": ids - 5})
    request.save_state(tmp_path / "said")
    Core().import_model(blobs["OPTIMIZE_SPEED"]).create_infer_request().load_state(
        tmp_path / "said"
    )
    with pytest.raises(StateError, match="model"):
        Core().import_model(another_blob).create_infer_request().load_state(tmp_path / "said")


@pytest.mark.parametrize("option", ["WEIGHTS_PATH", "MODEL_PTR"])
def test_weights_are_found_by_file_or_folder(blobs, tiny, option: str) -> None:
    for place in (tiny, tiny / "model.safetensors"):
        Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", {option: str(place)})


def test_weights_must_be_those_of_the_blob(blobs, tiny, tmp_path) -> None:
    copy = shutil.copytree(tiny, tmp_path / "copy")
    config = {"WEIGHTS_PATH": str(copy), "CACHE_DIR": str(tmp_path)}
    Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", config)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    with pytest.raises(ModelError, match="differs from the file at the blob's compilation"):
        Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", config)
    (copy / "model.safetensors").rename(copy / "other.safetensors")
    with pytest.raises(ModelError, match="No such file"):
        Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", config)
    with pytest.raises(ModelError, match="xx: File name too long"):
        Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", {"WEIGHTS_PATH": "x" * 300})
    config["WEIGHTS_PATH"] += "/other.safetensors"
    with pytest.raises(ModelError, match=r"the blob was compiled from model\.safetensors"):
        Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", config)


def test_a_model_changed_since_compilation_is_not_exported(tiny, tmp_path) -> None:
    copy = shutil.copytree(tiny, tmp_path / "copy")
    compiled = Core().compile_model(copy, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64})
    os.utime(copy / "model.safetensors", ns=(1, 1))
    with pytest.raises(ModelError, match="changed after compilation; compile again"):
        compiled.export_model(tmp_path / "x.blob")
    assert not list(tmp_path.glob("*.blob"))
    assert not list(tmp_path.glob(".*"))


def test_options_of_the_blob_can_be_read_but_not_contradicted(blobs) -> None:
    blob = blobs["OPTIMIZE_SPEED"]
    same = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_GENERATE_PYRAMID_STEPS": [128, 192]}
    imported = Core().import_model(blob, "NPU", same)
    assert imported.get_property("NPUW_LLM_MIN_RESPONSE_LEN") == 128
    assert imported.get_property("NPUW_LLM_GENERATE_PYRAMID_STEPS") == (128, 192)
    other = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "INFERENCE_PRECISION_HINT": "f32"}
    expected = (
        r"NPUW_LLM_MAX_PROMPT_LEN = 128 \(the blob has 64\), "
        r"INFERENCE_PRECISION_HINT = 'f32' \(the blob has 'f16'\)"
    )
    with pytest.raises(OptionError, match=expected):
        Core().import_model(blob, "NPU", same | other)
    with pytest.raises(OptionError, match="did you mean NPUW_LLM_MAX_PROMPT_LEN"):
        Core().import_model(blob, "NPU", {"NPUW_LLM_MAX_PROMT_LEN": 64})


def test_run_time_options_are_checked_independently_of_the_blob(tiny) -> None:
    """Errors once blamed the blob; a map with run-time options had to repeat the blob's."""
    generate = "++NPUW_LLM_GENERATE_CONFIG"
    fixed = {"NPUW_LLM_ON_FULL": "SLIDE", generate: {"NPUW_ONLINE_PIPELINE": "JUST"}}
    own = SMALL | fixed | {"CACHE_MODE": "OPTIMIZE_SPEED"}
    blob = Core().compile_model(tiny, "NPU", own).export_model()
    with pytest.raises(OptionError, match=r"^NPUW_LLM_SINK_TOKENS = 64: sink tokens leave"):
        Core().import_model(blob, "NPU", {"NPUW_LLM_SINK_TOKENS": 64})
    imported = Core().import_model(blob, "NPU", {generate: {"NPUW_ACC_THRESH": 0.5}})
    told = imported.get_property(generate)
    assert told == {"NPUW_ONLINE_PIPELINE": "JUST", "NPUW_ACC_THRESH": 0.5}
    with pytest.raises(OptionError, match="contradict "):
        Core().import_model(blob, "NPU", {generate: {"NPUW_ONLINE_PIPELINE": "REP"}})


OF_A_RUN = {
    "CACHE_ENCRYPTION_CALLBACKS": (bytes, bytes),
    "NPUW_LLM_KV_SWITCHOVER": "COPY",
    "NPUW_LLM_SINK_TOKENS": 2,
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 9,
    "NPUW_LLM_PREFIX_CACHING_MAX_BYTES": 1 << 20,
    "NPUW_WEIGHTS_BANK": "b",
    "NPUW_WEIGHTS_BANK_ALLOC": "SHARED",
    "NPUW_WEIGHTS_BUDGET": 1 << 20,
    "NPUW_WEIGHTS_RESERVED": 2,
    "NPUW_MOE_POOL_SIZE": 3,
    "NPUW_ONLINE_DUMP_PLAN": "nothing is compiled/plan.xml",
    "NPUW_DUMP_FULL": True,
    "NPUW_DUMP_SUBS": "YES",
    "NPUW_DUMP_SUBS_ON_FAIL": "YES",
    "NPUW_DUMP_IO": "last",
    "NPUW_DUMP_IO_ITERS": True,
    "PERF_COUNT": True,
    "NPU_PROFILING_TYPE": "INFER",
    "MODEL_PRIORITY": "LOW",
    "WORKLOAD_TYPE": "EFFICIENT",
    "NPUW_FALLBACK_EXEC": False,
    "NPUW_ACC_THRESH": 0.5,
    "NPUW_ACC_DEVICE": "CPU",
    "LOG_LEVEL": "",
    # These options do not change a language model's blob.
    "NPU_EXPORT_RAW_BLOB": True,
    "NPU_IMPORT_RAW_BLOB": True,
    "NPU_DISABLE_VERSION_CHECK": True,
    "NPU_RUN_INFERENCES_SEQUENTIALLY": True,
}

ALL_ALIKE = {
    **{field.alias or "": not field.default for field in MechanismOptions.model_fields.values()},
    "NPUW_DCOFF_TYPE": "i8",
    "NPUW_PMM": "NO",
    "NPUW_ONLINE_KEEP_BLOCKS_TAGGED": ("attn",),
    "NPU_ENABLE_STRIDES_FOR": ("input_ids",),
    "PERFORMANCE_HINT": "LATENCY",
    "NPU_COMPILER_TYPE": "PLUGIN",
    "NUM_STREAMS": 4,
    "PERFORMANCE_HINT_NUM_REQUESTS": 2,
}
"""Options without effect, with other values than their defaults."""


def test_run_time_options_apply(exporters, blobs, tiny, speak, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = dict.fromkeys(("CACHE_DIR", "NPUW_CACHE_DIR"), str(tmp_path))
    folders = {**own, "NPUW_DUMP_SUBS_DIR": str(tmp_path / "dumps")}
    config = OF_A_RUN | ALL_ALIKE | folders | {"WEIGHTS_PATH": str(tiny)}
    others = {"BLOB_PATH", "EXPORT_BLOB", "MODEL_PTR"}
    refusing = {"NPUW_ENSURE_COMPATIBILITY", "NPU_UNTRUSTED_SOURCE"}
    assert config.keys() | others | refusing == RUN_TIME
    imported = Core().import_model(blobs["OPTIMIZE_SIZE"], "NPU", config)
    for name, value in config.items():
        assert imported.get_property(name) == value, name
    assert np.array_equal(speak(imported), speak(exporters["OPTIMIZE_SIZE"]))
    assert imported.sharing() is not None or sys.platform != "linux"
    again = io.BytesIO(imported.export_model())
    again.seek(56)  # after the header of the encrypted file; the cipher here is the identity
    assert again.read() == blobs["OPTIMIZE_SIZE"].read_bytes(), "without run-time options"


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_LLM_SHARED_HEAD": "NO"},
        {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 4},
        {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES"},
        {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES", "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16},
        {"NPUW_LLM_GENERATE_CONFIG": {"NPU_TILES": 1}, "++NPUW_LLM_PREFILL_CONFIG": {}},
        {"NPUW_LLM_GENERATE_HINT": "BEST_PERF", "KV_CACHE_PRECISION": "i8"},
        {"KV_CACHE_PRECISION": "f8e4m3"},
        {"KV_CACHE_PRECISION": "f16", "INFERENCE_PRECISION_HINT": "f32"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_all_kinds_of_stages_are_exported_and_imported(tiny, speak, options) -> None:
    exported = Core().compile_model(tiny, "NPU", SMALL | options)
    imported = Core().import_model(exported.export_model(), "NPU", {"WEIGHTS_PATH": str(tiny)})
    for name in options:
        fixed = name not in RUN_TIME
        assert not fixed or imported.get_property(name) == exported.get_property(name)
    assert np.array_equal(speak(imported), speak(exported))


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
            "offloaded models can be neither exported nor imported",
        ),
        ({"NPUW_ACC_CHECK": "YES"}, "exported blobs do not contain"),
        ({"NPUW_DEVICES": "CPU"}, "NPUW_DEVICES = 'CPU'"),
    ],
)
def test_models_that_need_more_than_programs_are_neither_exported_nor_imported(
    blobs, tall, tmp_path, monkeypatch, options, why
) -> None:
    compiled = Core().compile_model(tall, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64} | options)
    with pytest.raises(OptionError, match=why):
        compiled.export_model()
    with pytest.raises(OptionError, match=why):
        Core().import_model(blobs["OPTIMIZE_SPEED"], "NPU", options)
    monkeypatch.setattr("npuw_layer.llm.compiled.compile_llm", None)
    with pytest.raises(OptionError, match=why):
        Core().compile_model(tall, "NPU", options | {"BLOB_PATH": "x.blob", "EXPORT_BLOB": "YES"})


def test_other_versions_are_rejected_with_both_versions(blobs, monkeypatch) -> None:
    for what, name in (("npuw", "npuw_layer"), ("device", "compiler_layer")):
        with monkeypatch.context() as newer:
            real = versions.package_version
            fake = lambda package, name=name, real=real: (  # noqa: E731
                "9.9.9+0" if package == name else real(package)
            )
            newer.setattr("npuw_layer.storage.cache.key.package_version", fake)
            newer.setattr("npuw_layer.backends.compiler_layer.package_version", fake)
            with pytest.raises(BlobVersionError) as caught:
                Core().import_model(blobs["OPTIMIZE_SPEED"])
        assert caught.value.what == what
        assert "9.9.9+0" in caught.value.needed
        assert real(name) in caught.value.found
        for part in (str(blobs["OPTIMIZE_SPEED"]), caught.value.found, caught.value.needed):
            assert part in str(caught.value)


def test_another_format_is_rejected_with_both_versions(blobs) -> None:
    content = bytearray(blobs["OPTIMIZE_SPEED"].read_bytes())
    content[12] += 1
    with pytest.raises(BlobVersionError, match=re.escape("by format 2.1, installed is 1.1")):
        Core().import_model(bytes(content))


def test_programs_that_name_files_are_not_exported(tiny, tmp_path) -> None:
    config = {"NPUW_DEVICES": "CPU", "NPUW_LLM_MAX_PROMPT_LEN": 64}
    compiled = Core().compile_model(tiny, "NPU", config)
    with pytest.raises(OptionError, match="NPUW_DEVICES = 'CPU'"):
        compiled.export_model()
    with pytest.raises(OptionError, match="NPUW_DEVICES = 'CPU'"):
        Core().compile_model(tiny, "NPU", config | {"EXPORT_BLOB": "YES"})


# Through compile_model.


def test_compile_model_exports_and_imports(tiny, speak, tmp_path, caplog) -> None:
    path = tmp_path / "x.blob"
    config = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "BLOB_PATH": str(path)}
    exported = Core().compile_model(tiny, "NPU", config | {"EXPORT_BLOB": "YES"})
    caplog.set_level("INFO")
    imported = Core().compile_model(tiny, "NPU", config)
    assert np.array_equal(speak(imported), speak(exported)), "the weights are read from the model"
    assert f"{path}: " in caplog.text
    assert "imported in" in caplog.text
    assert "compiling" not in caplog.text


def test_without_a_path_the_blob_is_in_the_current_folder(tiny, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Core().compile_model(tiny, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64, "EXPORT_BLOB": "YES"})
    assert [path.name for path in tmp_path.iterdir()] == ["openvino_model.blob"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("x.bin", r"BLOB_PATH = .*must end in \.blob"),
        ("nowhere/x.blob", r"no folder \S+ exists"),
        (".blob", "cannot be written"),
        ("x" * 300 + ".blob", r"BLOB_PATH .*x\.blob: it cannot be written: File name too long"),
    ],
)
def test_a_path_that_cannot_be_written_is_rejected_before_compilation(
    tiny, tmp_path, monkeypatch, path: str, problem: str
) -> None:
    """NPUW reports the error only after minutes of compilation."""
    (tmp_path / ".blob").mkdir()
    monkeypatch.setattr("npuw_layer.llm.compiled.compile_llm", None)
    config = {"EXPORT_BLOB": "YES", "BLOB_PATH": str(tmp_path / path)}
    with pytest.raises(OptionError, match=problem):
        Core().compile_model(tiny, "NPU", config)


def test_the_error_of_a_missing_blob_has_its_path(tiny, tmp_path) -> None:
    with pytest.raises(BlobError, match=r"x\.blob: No such file"):
        Core().compile_model(tiny, "NPU", {"BLOB_PATH": str(tmp_path / "x.blob")})


def test_an_invalid_path_is_rejected(exporters, tmp_path) -> None:
    for name, refused in (("a\0b", "null byte"), ("a\ud800b", "surrogates not allowed")):
        with pytest.raises(BlobError, match=refused):
            Core().import_model(tmp_path / name)
        with pytest.raises(NpuwFault, match=refused):
            exporters["OPTIMIZE_SIZE"].export_model(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_rejected_as_blob_without_waiting(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BlobError, match="pipe: not a regular file"):
        Core().import_model(tmp_path / "pipe")


def test_a_pipe_is_rejected_as_target_of_an_export(exporters, tiny, tmp_path, monkeypatch) -> None:
    path = tmp_path / "pipe.blob"
    os.mkfifo(path)
    with pytest.raises(NpuwFault, match=r"pipe\.blob: not a regular file"):
        exporters["OPTIMIZE_SIZE"].export_model(path)
    monkeypatch.setattr("npuw_layer.llm.compiled.compile_llm", None)
    with pytest.raises(OptionError, match=r"pipe\.blob: it cannot be written: not a regular file"):
        Core().compile_model(tiny, "NPU", {"EXPORT_BLOB": "YES", "BLOB_PATH": str(path)})
    assert path.is_fifo()


def test_leftovers_next_to_the_target_of_a_link_are_deleted(exporters, tmp_path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / ".x.blob-12345678.tmp").write_bytes(b"half")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "x.blob")
    exporters["OPTIMIZE_SIZE"].export_model(tmp_path / "link")
    assert os.listdir(tmp_path / "far") == ["x.blob"]
    assert (tmp_path / "link").is_symlink()


def test_leftovers_of_a_killed_export_are_deleted_by_the_next(exporters, tmp_path) -> None:
    left, others = tmp_path / ".x.blob-12345678.tmp", tmp_path / ".y.blob-12345678.tmp"
    for path in (left, others):
        path.write_bytes(b"half")
    exporters["OPTIMIZE_SIZE"].export_model(tmp_path / "x.blob")
    assert sorted(path.name for path in tmp_path.iterdir()) == [others.name, "x.blob"]


def test_errors_name_the_file(blobs, tmp_path) -> None:
    damaged = tmp_path / "damaged.blob"
    damaged.write_bytes(blobs["OPTIMIZE_SPEED"].read_bytes()[:-1])
    with pytest.raises(NpuwError, match=re.escape(f"{damaged}: it has")):
        Core().import_model(damaged)


def test_the_error_of_a_rejected_program_has_its_file(blobs, tmp_path, monkeypatch) -> None:
    """The blob has no model to compile the program from again."""

    def refuse(*_: object) -> None:
        raise DeviceError("no such machine")

    monkeypatch.setattr("npuw_layer.backends.level_zero.LevelZeroDevice.load", refuse)
    problem = "the device rejects prefill_32: no such machine; export the model again"
    with pytest.raises(DeviceError, match=re.escape(f"{blobs['OPTIMIZE_SPEED']}: {problem}")):
        Core().import_model(blobs["OPTIMIZE_SPEED"])


def test_a_decompressing_stream_returns_decompressed_bytes(blobs, tmp_path) -> None:
    """The stream has the descriptor of the compressed file, which must not be mapped instead."""
    packed = tmp_path / "x.blob.gz"
    packed.write_bytes(gzip.compress(blobs["OPTIMIZE_SPEED"].read_bytes(), 1))
    with gzip.open(packed) as source:
        Core().import_model(source)
