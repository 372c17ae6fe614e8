"""Untrusted native blobs: any content results in a payload or a BlobError, within the bytes.

``fuzz_native.py`` fuzzes without a time limit; its findings are stored in corpus/.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.errors import BlobError
from npuw_layer.options import parse_options
from npuw_layer.storage.manifest import ModelManifest
from npuw_layer.storage.native_blob.container import footer, pad, read_blob
from npuw_layer.storage.native_blob.metadata import BlobType, Metadata
from npuw_layer.storage.native_blob.payload import Payload, open_payload
from npuw_layer.storage.native_blob.section import write_section

CORPUS = Path(__file__).parent / "corpus"
PAYLOAD = b"\x7fELF" + bytes(range(96))
SAID = Metadata(input_layouts=("NC", "[...]"), output_layouts=("[...]",), compiler=1 << 16 | 2)
MANIFEST = ModelManifest(
    parts=(), versions={"npuw": "1"}, options={}, files={"model.bin": "0" * 64}, model="1" * 64
)


def whole(said: Metadata = SAID, behind: bytes | None = None) -> bytes:
    """Return a native blob, with our section unless other bytes are given."""
    payload, described = PAYLOAD + pad(PAYLOAD), said.write()
    if behind is None:
        behind = write_section(MANIFEST, described, b"values", ())
    return payload + described + behind + footer(len(payload))


def found(content: bytes, **options: str) -> Payload:
    return open_payload(memoryview(content), parse_options(options))


def outcome(content: bytes) -> str:
    """Return the outcome of reading a file with and without version checks."""
    outcomes: list[str] = []
    for check in ("NO", "YES"):
        try:
            payload = found(content, NPU_DISABLE_VERSION_CHECK=check)
        except BlobError as error:
            outcomes.append(type(error).__name__)
        else:
            assert 0 < payload.place.size == len(payload.place.view) <= len(content)
            outcomes.append("plain" if payload.section is None else "payload")
    return " ".join(outcomes)


def mutate(draw: random.Random) -> bytes:
    """Change bytes behind a blob's payload."""
    content = bytearray(whole(behind=draw.choice((None, b"", bytes(50)))))
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(4090, len(content))
        width = draw.choice((1, 2, 4, 8))
        value = draw.choice((0, 1, 2 ** (8 * width) - 1, draw.getrandbits(8 * width)))
        content[at : at + width] = value.to_bytes(width, "little")
    if draw.random() < 0.2:
        at = draw.randrange(4096, len(content))
        del content[at : at + draw.randrange(60)]
    return bytes(content)


def test_the_payload_is_read_back() -> None:
    payload = found(whole())
    assert bytes(payload.place.view) == PAYLOAD + bytes(4096 - len(PAYLOAD))
    assert payload.metadata == SAID
    assert payload.section is not None
    assert (payload.section.manifest, bytes(payload.section.values)) == (MANIFEST, b"values")


@pytest.mark.parametrize("behind", [b"", bytes(1), bytes(4000)])
def test_zeros_of_older_plugins_before_the_footer_are_ignored(behind: bytes) -> None:
    payload = found(whole(behind=behind))
    assert payload.metadata == SAID
    assert payload.section is None


def test_three_thousand_mutations_result_in_payloads_or_typed_errors() -> None:
    draw = random.Random(2026)
    outcomes = {outcome(mutate(draw)) for _ in range(3000)}
    # The mutations must reach every stage of reading, or the test proves nothing.
    assert {"plain plain", "DamagedBlob DamagedBlob", "BlobVersionError plain"} <= outcomes


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_section_is_used_only_if_all_bytes_behind_the_payload_are_intact(data) -> None:
    """The loader verifies the payload's own digest."""
    content = bytearray(whole())
    values = len(content) - len(footer(0)) - len(b"values")
    at = data.draw(st.integers(4096, len(content) - 1).filter(lambda at: not 0 <= at - values < 6))
    content[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BlobError):
        found(bytes(content))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, len(whole()) - 1))
def test_a_truncated_file_is_rejected(size: int) -> None:
    with pytest.raises(BlobError):
        found(whole()[:size])


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_are_rejected_or_a_payload(content: bytes, ending: bool) -> None:
    outcome(content + (footer(4) if ending else b""))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.blob")), ids=lambda path: path.stem)
def test_fuzzing_findings_stay_fixed(path: Path) -> None:
    assert outcome(path.read_bytes()).startswith("DamagedBlob")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (b"short", "5 bytes are too few"),
        (PAYLOAD, "it does not end with b'OVNPU': .* set NPU_IMPORT_RAW_BLOB to YES"),
        (whole()[:-13] + footer(0), "a payload of 0 bytes"),
        (
            whole()[:-13] + footer(2**64 - 1),
            "a payload of 18446744073709551615 bytes does not fit a file",
        ),
        (whole()[:-13] + footer(len(whole())), "does not fit a file"),
        (whole(behind=b"something"), "neither zeros nor a section"),
        (whole(SAID, b"\x13\x37npuwSECRET" + bytes(50)), "encrypted, not both"),
        (whole(Metadata(blob_type=BlobType.LLVM)), "its payload is LLVM, code for the host"),
        (whole(Metadata(blob_type=BlobType.BYTECODE)), "its payload is BYTECODE"),
        (whole(Metadata(init_sizes=(64, 32))), "it has 2 init schedules"),
        (
            whole(Metadata(init_sizes=(4096, 1))),
            "payload of [0-9]+ bytes: init schedules take 4097",
        ),
        (whole(Metadata(batch=-2)), "its batch of -2 is not a number of items"),
        (whole(Metadata(batch=-(2**63))), "its batch of -9223372036854775808"),
        (whole(Metadata(encrypted=True)), "set CACHE_ENCRYPTION_CALLBACKS"),
    ],
)
def test_errors_name_the_problem(content: bytes, problem: str) -> None:
    with pytest.raises(BlobError, match=problem):
        found(content)


def test_the_section_of_other_metadata_is_rejected() -> None:
    described = Metadata(compiler=3).write()
    section = write_section(MANIFEST, described, b"", ())
    with pytest.raises(BlobError, match="its metadata is damaged"):
        found(whole(Metadata(compiler=4), section))


def test_a_section_of_another_version_is_rejected() -> None:
    described = SAID.write()
    section = bytearray(write_section(MANIFEST, described, b"", ()))
    section[8:12] = struct.pack("<2H", 1, 9)
    with pytest.raises(BlobError, match=r"section 1\.9, installed is 1\.0"):
        found(whole(behind=bytes(section)))


def test_reading_accesses_only_bytes_behind_the_payload() -> None:
    """The cost before verification is therefore independent of the payload's size."""
    content = whole()
    blob = read_blob(memoryview(content))
    assert blob.described == memoryview(SAID.write())
    assert blob.payload.offset == 0
    assert len(blob.behind) == len(content) - 4096 - len(blob.described) - len(footer(0))
