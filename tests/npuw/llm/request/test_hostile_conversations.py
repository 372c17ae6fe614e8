"""Untrusted saved conversations: each is rejected, or can be continued."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver_layer.support.files import content_digest
from npuw_layer.errors import NpuwInputError, NpuwUsageError, StateError

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
}

IDS = np.random.default_rng(7).integers(0, 97, 50).tolist()

HOSTILE = [
    *(None, True, 0, 1, 39, 41, -1, -2, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 64),
    *(0.5, float("nan"), "", "abc", "\0", "\ud800", "9" * 5000),
    *([], [0], [[]], [-1], [1 << 31], ["abc"], {}, {"abc": 1}),
]

Header = dict[str, Any]


def parts(content: bytes) -> tuple[Header, bytes]:
    """Return a file's header, with unpacked metadata and without digest, and its rows."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    metadata = header["__metadata__"]
    metadata["conversation"] = json.loads(metadata["conversation"])
    del metadata["digest"]
    return header, content[end:]


def whole(header: Any, rows: bytes) -> bytes:
    """Return the file of a header from ``parts``, or of any other, with a matching digest."""
    header = copy.deepcopy(header)
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if isinstance(metadata, dict) and "conversation" in metadata:
        metadata["conversation"] = json.dumps(metadata["conversation"])
    if isinstance(metadata, dict):
        metadata["digest"] = content_digest([json.dumps(header).encode(), rows]).hex()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rows


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a header; of lists the ends, and one between."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) // 2, len(value) - 1} & {*range(len(value))}):
            yield from places(value[at], (*path, at))


def changed(header: Header, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    header = copy.deepcopy(header)
    *above, last = path
    target: Any = header
    for key in above:
        target = target[key]
    target[last] = value
    return header


def is_refused(talk, path: Path, content: bytes) -> bool:
    """Load a file; an accepted file must be consistent, and continues or raises a typed error."""
    path.write_bytes(content)
    try:
        talk.request.load_state(path)
    except StateError:
        return True
    talk.request.save_state(path)
    given, found = parts(content)[0], parts(path.read_bytes())[0]
    assert found["__metadata__"] == given["__metadata__"]
    history = talk.request._conversation.history
    for ids in ([5], [6, 7], IDS, [8]):
        positions = history.first_position + history.caller_count + np.arange(len(ids))
        inputs = {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, history.caller_count + len(ids)), np.int64),
            "position_ids": positions[None],
        }
        try:
            talk.request.infer(inputs)
        except (NpuwUsageError, NpuwInputError):
            break
    return False


@pytest.fixture
def saved(talks, tmp_path) -> tuple[Header, bytes]:
    """Return a file of forty tokens, in parts."""
    talk = talks(**SMALL)
    talk.tell(IDS[:40])
    talk.request.save_state(tmp_path / "saved")
    return parts((tmp_path / "saved").read_bytes())


@pytest.mark.long
def test_any_value_anywhere_in_the_header_is_accepted_or_rejected(talks, tmp_path, saved) -> None:
    talk, (header, rows) = talks(**SMALL, NPUW_LLM_ON_FULL="TRUNCATE"), saved
    loaded: set[tuple[Any, ...]] = set()
    for place in places(header):
        for value in HOSTILE:
            if not is_refused(talk, tmp_path / "talk", whole(changed(header, place, value), rows)):
                loaded.add(place)
    numbers = {("__metadata__", "conversation", name) for name in ("sinks", "dropped")}
    assert numbers <= loaded, "other numbers make another conversation"


def test_a_file_of_another_length_is_rejected(talks, tmp_path, saved) -> None:
    talk, content = talks(**SMALL), whole(*saved)
    begin = len(content) - len(saved[1])
    for length in (*range(20), begin - 1, begin, begin + 1, len(content) // 2, len(content) - 1):
        assert is_refused(talk, tmp_path / "talk", content[:length])
    for length in (0, begin - 9, begin - 7, len(content) - 7, 1 << 31, (1 << 64) - 1):
        forged = length.to_bytes(8, "little") + content[8:]
        assert is_refused(talk, tmp_path / "talk", forged)
    assert not is_refused(talk, tmp_path / "talk", content)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_LLM_ON_FULL": "ERROR"},
        {"NPUW_LLM_ON_FULL": "TRUNCATE", "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
        {"NPUW_LLM_ON_FULL": "SLIDE"},
    ],
    ids=["ends", "truncated", "slides"],
)
def test_forged_consistent_files_are_safe(talks, tmp_path, saved, options) -> None:
    talk, (header, _), draw = talks(**SMALL, **options), saved, random.Random(3)
    loaded = 0
    for _ in range(150):
        count = draw.choice([1, 2, 30, 40, 100, 127, 128, 129, 200])
        held = draw.randint(1, min(count, 120))
        known = draw.choice([0, 1, count])
        others = range(count - held, count - 1)
        if draw.random() < 0.6:
            others = sorted(draw.sample(range(count - 1), held - 1))
        forged, end = copy.deepcopy(header), 0
        forged["__metadata__"]["conversation"] |= {
            "first_position": draw.choice([0, 0, 1, -1, -40, 63, 64]),
            "ids": [-1] * (count - known) + draw.choices(range(97), k=known),
            "sinks": draw.choice([0, 0, 1, 4, count]),
            "dropped": draw.choice([0, 0, 1, 100]),
            "numbers": [*others, count - 1],
        }
        for name in forged.keys() - {"__metadata__"}:
            shape = [held, *forged[name]["shape"][1:]]
            begin, end = end, end + 4 * int(np.prod(shape))
            forged[name] |= {"shape": shape, "data_offsets": [begin, end]}
        loaded += not is_refused(talk, tmp_path / "talk", whole(forged, bytes(end)))
    assert 0 < loaded < 150


@pytest.mark.parametrize("header", [[], 5, None, "abc", True])
def test_a_header_that_is_not_an_object_is_rejected(talks, tmp_path, saved, header) -> None:
    (tmp_path / "talk").write_bytes(whole(header, saved[1]))
    with pytest.raises(StateError, match="not a saved conversation: its header is not a JSON"):
        talks(**SMALL).request.load_state(tmp_path / "talk")


@pytest.mark.parametrize(
    ("forged", "says"),
    [
        ({"ids": [5] * 39 + [97]}, "is 97, not a token id: the model's vocabulary has 97"),
        ({"ids": [5] * 39 + [-1], "dropped": 1}, "unknown tokens follow known ones"),
        ({"ids": [-1] * 40, "dropped": 1}, "it dropped 1 tokens, but 40 others are unknown"),
        ({"dropped": (1 << 31) - 1}, "it states 2147483647 dropped tokens"),
        ({"first_position": (1 << 31) - 1}, "begin at position 2147483647, so no position is left"),
        ({"first_position": -1}, "begin at position -1, so no position is left"),
    ],
)
def test_tokens_that_no_token_can_follow_are_rejected(talks, tmp_path, saved, forged, says) -> None:
    header, rows = saved
    header["__metadata__"]["conversation"] |= forged
    (tmp_path / "talk").write_bytes(whole(header, rows))
    with pytest.raises(StateError, match=says):
        talks(**SMALL, NPUW_LLM_ON_FULL="TRUNCATE").request.load_state(tmp_path / "talk")
