"""Exported blobs of untrusted sources: any content results in a typed error or a model."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer import Core
from npuw_layer.errors import BlobError, BlobVersionError, NpuwError, OptionError
from npuw_layer.storage.container import (
    MAGIC,
    MODEL,
    STAGE,
    describe,
    read_container,
    write_container,
)
from npuw_layer.storage.manifest import EntryManifest, ModelManifest, ProgramEntry

Json = dict[str, Any]
Forge = Callable[..., bytes]


def read(content: bytes) -> None:
    """Verify a file of programs."""
    found = read_container(memoryview(content), STAGE, EntryManifest)
    found.check_programs()
    found.check_constants()


def small(*sizes: int) -> bytes:
    """Return a file of programs of these sizes, each with weights in its middle."""
    draw = random.Random(1)
    programs = [draw.randbytes(size) for size in sizes]
    parts = [
        describe(f"part {number}", program, [(len(program) // 4, max(1, len(program) // 2))])
        for number, program in enumerate(programs)
    ]
    file = io.BytesIO()
    write_container(file, STAGE, EntryManifest(parts=tuple(parts), key={"a": "b"}), programs)
    return file.getvalue()


@settings(max_examples=18, deadline=None)
@given(sizes=st.lists(st.integers(1, 20_000), max_size=4))
def test_every_written_file_can_be_read(sizes: list[int]) -> None:
    content = small(*sizes)
    found = read_container(memoryview(content), STAGE, EntryManifest)
    assert [len(program) for program in found.programs] == sizes
    found.check_programs()
    found.check_constants()
    assert all(place.offset % 4096 == 0 for place in found.places), "they can be mapped"


@settings(max_examples=70, deadline=None)
@given(data=st.data())
def test_every_byte_is_zero_or_covered_by_a_digest(data) -> None:
    content = small(3000, 5000)
    at = data.draw(st.integers(0, len(content) - 1))
    value = data.draw(st.integers(1, 255))
    with pytest.raises(BlobError):
        read(content[:at] + bytes([content[at] ^ value]) + content[at + 1 :])


@settings(max_examples=20, deadline=None)
@given(length=st.integers(0, len(small(3000, 5000)) - 1))
def test_every_truncation_is_detected(length: int) -> None:
    with pytest.raises(BlobError):
        read(small(3000, 5000)[:length])


@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_rejected(content: bytes) -> None:
    for whole in (content, MAGIC + content, MAGIC + STAGE + content):
        with pytest.raises(BlobError):
            read(whole)


@dataclass
class Forged:
    """A manifest with arbitrary content."""

    manifest: Json
    parts: tuple[ProgramEntry, ...]

    def model_dump_json(self) -> str:
        return json.dumps(self.manifest)


@pytest.fixture
def forge(blobs) -> Forge:
    """Change the manifest of a blob and its programs, with correct digests, as an attacker can."""

    def change(edit: Callable[[Json, list[bytes]], object], mode: str = "OPTIMIZE_SPEED") -> bytes:
        content = blobs[mode].read_bytes()
        blob = read_container(memoryview(content), MODEL, ModelManifest)
        programs = [bytes(program) for program in blob.programs]
        manifest = blob.manifest.model_dump(mode="json")
        del manifest["parts"]
        names = [part.name for part in blob.manifest.parts]
        manifest["names"] = names
        edit(manifest, programs)
        parts = tuple(map(describe, manifest.pop("names"), programs, [[]] * len(programs)))
        manifest = {"parts": [part.model_dump(mode="json") for part in parts], **manifest}
        file = io.BytesIO()
        write_container(file, MODEL, Forged(manifest, parts), programs)
        return file.getvalue()

    return change


def swap(one: int, other: int) -> Callable[[Json, list[bytes]], None]:
    """Swap two of prefill_32, prefill_32_after_32, generate_128, generate_192, lm_head, weights."""

    def edit(manifest: Json, programs: list[bytes]) -> None:
        programs[one], programs[other] = programs[other], programs[one]

    return edit


def drop(which: int) -> Callable[[Json, list[bytes]], None]:
    def edit(manifest: Json, programs: list[bytes]) -> None:
        del manifest["names"][which], programs[which]

    return edit


def shorten(manifest: Json, programs: list[bytes]) -> None:
    programs[-1] = programs[-1][:-64]


def rename(manifest: Json, programs: list[bytes]) -> None:
    manifest["names"][0] = "generate_1"


def empty(manifest: Json, programs: list[bytes]) -> None:
    programs[0] = b"\x7fELF"


def option(name: str, value: object) -> Callable[[Json, list[bytes]], None]:
    def edit(manifest: Json, programs: list[bytes]) -> None:
        manifest["options"][name] = value

    return edit


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (swap(0, 1), r"prefill_32 has no attention_mask \[1, 32\]"),
        (swap(1, 2), r"prefill_32_after_32 has no npuw_output_embed f32 \[1, 32, "),
        (swap(2, 3), r"generate_128 has no attention_mask \[1, 128\]"),
        (swap(3, 4), r"generate_192 has no npuw_output_embed f32 \[1, 1, "),
        (
            drop(4),
            "its programs are .*, generate_192, weights, not prefill_32, .*, generate_192, lm_head",
        ),
        (drop(5), "it has no weights"),
        (option("CACHE_MODE", "OPTIMIZE_SIZE"), "it has weights that no program reads"),
        (shorten, "the weights have .* bytes, the programs read"),
        (rename, "its programs are generate_1, "),
        (empty, "loading a blob"),
        (option("NPUW_LLM_MAX_PROMPT_LEN", "128"), "its programs are"),
        (option("NPUW_LLM_MAX_PROMPT_LEN", "-1"), "its options are wrong"),
        (option("NPUW_LLM_MAX_PROMPT_LEN", "9" * 5000), "its options are wrong"),
        (option("NPUW_LLM_PREFILL_CHUNK_SIZE", "33"), "its options are wrong"),
        (option("NPUW_LLM_GENERATE_CONFIG", "{'NPU_TILES': 2}"), "its options are wrong"),
        (option("NPUW_LLM_SHARED_HEAD", "NO"), "its programs are .*, lm_head, weights, not "),
        (
            option("NPUW_LLM_SINK_TOKENS", "9"),
            "it sets NPUW_LLM_SINK_TOKENS, which no blob may set",
        ),
        (option("NPUW_WEIGHTS_OFFLOAD", "ASYNC"), "NPUW_WEIGHTS_OFFLOAD = ASYNC: offloaded models"),
        (option("NPUW_ACC_CHECK", "YES"), "NPUW_ACC_CHECK = YES: comparing devices"),
        (option("NO_SUCH", "1"), "its options are wrong: unknown option"),
        (option("CACHE_DIR", "elsewhere"), "it sets CACHE_DIR, which no blob may set"),
        (
            option("++NPUW_LLM_PREFILL_CONFIG", '{"NPUW_DUMP_IO": "YES"}'),
            r"it sets NPUW_DUMP_IO of \+\+NPUW_LLM_PREFILL_CONFIG, which no blob may set",
        ),
        (option("NPU_PLATFORM", "../secret.toml"), "it sets NPU_PLATFORM"),
        (option("NPUW_DEVICES", "CPU"), "NPUW_DEVICES = 'CPU'"),
        (option("NPUW_DEVICES", "GPU"), "NPUW_DEVICES = 'GPU' is not installed; use"),
    ],
)
def test_a_forged_blob_is_rejected(forge: Forge, edit, problem: str) -> None:
    with pytest.raises(NpuwError, match=problem):
        Core().import_model(forge(edit))


def parts_with(**wrong: object) -> Json:
    part = {"name": "prefill_64", "size": 9, "sha256": "0" * 64, "constants": []}
    return {"parts": [part | wrong]}


def constants(*spans: tuple[int, int]) -> Json:
    listed = [{"offset": at, "size": size, "sha256": "0" * 64} for at, size in spans]
    return parts_with(constants=listed)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"more": 1}, "wrong at more"),
        ({"options": 3}, "wrong at options"),
        ({"options": {"NPUW_LLM_MAX_PROMPT_LEN": 64}}, "wrong at options"),
        ({"files": {"../secret": "0" * 64}}, "wrong at files"),
        ({"files": {"secret": "0"}}, "wrong at files"),
        ({"parts": []}, "the parts take"),
        (parts_with(), "the parts take"),
        (parts_with(size=-1), r"wrong at parts\.0\.size"),
        (parts_with(size=1 << 70), "the parts take"),
        (parts_with(size="9"), r"wrong at parts\.0\.size"),
        (parts_with(sha256="x"), r"wrong at parts\.0\.sha256"),
        (constants((0, 0)), r"wrong at parts\.0\.constants\.0\.size"),
        (constants((1 << 40, 1)), "a constant of prefill_64 ends at"),
        (constants((4, 2), (0, 2)), "constants of prefill_64 overlap"),
        (constants((0, 5), (4, 2)), "constants of prefill_64 overlap"),
    ],
)
def test_a_forged_manifest_is_rejected(forge: Forge, wrong: Json, problem: str) -> None:
    with pytest.raises(BlobError, match=problem):
        Core().import_model(forge(lambda manifest, _: manifest.update(wrong)))


def test_a_blob_with_recomputed_digests_is_a_model(forge: Forge) -> None:
    """The tests above therefore fail because of their changes, not of the recomputed digests."""
    Core().import_model(forge(lambda manifest, programs: None)).create_infer_request()


@pytest.mark.parametrize("name", ["../secret", "/secret", "..", "a\\b", "a/b", "", "a\0"])
def test_files_outside_the_folder_of_the_model_are_not_read(forge: Forge, name: str) -> None:
    with pytest.raises(BlobError, match="manifest is wrong"):
        Core().import_model(forge(lambda manifest, _: manifest.update(files={name: "0" * 64})))


def test_programs_read_only_named_and_verified_files(forge: Forge, tiny) -> None:
    forged = forge(lambda manifest, _: manifest.update(files={}), "OPTIMIZE_SIZE")
    with pytest.raises(BlobError, match="needs files that the manifest does not name"):
        Core().import_model(forged, "NPU", {"WEIGHTS_PATH": str(tiny)})


@pytest.mark.long
def test_random_damage_with_recomputed_digests_results_in_typed_errors(forge: Forge) -> None:
    """The container accepts such files; the driver and later checks must not crash."""
    draw = random.Random(9)
    outcomes: set[str] = set()
    for _ in range(60):

        def edit(manifest: Json, programs: list[bytes]) -> None:
            which = draw.randrange(len(programs))
            program = bytearray(programs[which])
            at = draw.randrange(min(len(program), 40_000))
            program[at : at + 4] = draw.choice((b"\xff" * 4, bytes(4), draw.randbytes(4)))
            programs[which] = bytes(program)

        try:
            Core().import_model(forge(edit)).create_infer_request()
        except NpuwError as error:
            outcomes.add(type(error).__name__)
        else:
            outcomes.add("model")
    assert {"DeviceError", "model"} <= outcomes


def test_options_of_another_version_are_not_parsed(forge: Forge) -> None:
    def edit(manifest: Json, programs: list[bytes]) -> None:
        manifest["versions"]["npuw"] = "9.9"
        manifest["options"]["A_NEW_OPTION"] = "1"

    with pytest.raises(BlobVersionError):
        Core().import_model(forge(edit))


def test_options_of_the_run_are_checked_before_those_of_the_blob(blobs) -> None:
    with pytest.raises(OptionError, match="unknown option 'FOO'"):
        Core().import_model(blobs["OPTIMIZE_SPEED"], "NPU", {"FOO": 1})
