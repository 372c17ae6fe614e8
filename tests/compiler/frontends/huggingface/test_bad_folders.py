"""Damaged folders are read or refused by name, whatever index, headers and config contain."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler_layer.errors import BadModel, CompilerError
from compiler_layer.frontends.huggingface import read_folder

FolderOf = Callable[..., Path]
HERE = Path(__file__).parent
CORPUS = HERE.parent / "corpus"


@pytest.fixture(scope="module")
def mutations(load_module: Callable[[Path], Any]) -> Any:
    """Mutations that the fuzzer also applies."""
    return load_module(HERE.parent / "mutations.py")


@pytest.fixture(scope="module")
def sharded(families: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read-only folder of three shards."""
    folder = tmp_path_factory.mktemp("sharded")
    families.write_folder(folder, families.descriptions()["mistral"], 3)
    (folder / "model.safetensors").unlink(missing_ok=True)
    return folder


Header = dict[str, Any]


def split(content: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def change_header(folder: Path, change: Callable[[Header], object]) -> None:
    path = folder / "model.safetensors"
    header, data = split(path.read_bytes())
    change(header)
    path.write_bytes(joined(header, data))


NORM = "model.norm.weight"


def second(header: Header) -> str:
    """Return a tensor other than the norm."""
    others = [name for name in header if name not in (NORM, "__metadata__")]
    return others[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda h: h[NORM].update(dtype="F4"), "element type F4 is not supported"),
        (lambda h: h[NORM].update(dtype=["F32"]), "is not supported"),
        (lambda h: h[NORM].pop("dtype"), "dtype, shape or data_offsets are missing"),
        (lambda h: h[NORM].update(shape="8"), "dtype, shape or data_offsets are missing"),
        (lambda h: h[NORM].update(shape=[True] * 8), "dtype, shape or data_offsets are missing"),
        (lambda h: h[NORM].update(shape=[2**62] * 100_000), "dtype, shape or data_offsets"),
        (lambda h: h[NORM].update(shape=[-8, -4]), "bytes for"),
        (lambda h: h[NORM].update(data_offsets="08"), "dtype, shape or data_offsets are missing"),
        (lambda h: h[NORM].update(data_offsets=[0, 1, 2]), "dtype, shape or data_offsets"),
        (lambda h: h[NORM].update(data_offsets=[-64, 0]), "are outside the file"),
        (lambda h: h[NORM].update(data_offsets=[2**70, 2**70 + 64]), "are outside the file"),
        (
            lambda h: h[NORM].update(data_offsets=h[NORM]["data_offsets"][::-1]),
            "bytes for",
        ),
    ],
)
def test_a_false_header_is_named(
    folder_of: FolderOf, mutations: Any, change: Callable[[Header], object], says: str
) -> None:
    folder = folder_of("mistral")
    change_header(folder, change)
    with pytest.raises(BadModel) as raised, mutations.limited():
        read_folder(folder)
    assert says in str(raised.value)
    assert NORM in str(raised.value)


def test_tensors_that_share_bytes_are_refused(folder_of: FolderOf) -> None:
    folder = folder_of("mistral")

    def overlap(header: Header) -> None:
        sizes = {n: e["data_offsets"][1] - e["data_offsets"][0] for n, e in header.items()}
        same = next(n for n in sizes if n != NORM and sizes[n] == sizes[NORM])
        header[same]["data_offsets"] = header[NORM]["data_offsets"]

    change_header(folder, overlap)
    with pytest.raises(BadModel, match="shares bytes with another tensor"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("shard", "says"),
    [
        (5, "a shard is not a file name"),
        (None, "a shard is not a file name"),
        ("", "a shard is not a file name"),
        ("a\0b", "a shard is not a file name"),
        ([], "is not an index of shards"),
        ("..", "a shard is outside|is not a file"),
        ("config.json", "the header of [0-9]+ bytes exceeds"),
        ("x" * 5000, "File name too long"),
    ],
)
def test_an_index_without_valid_shards_is_refused(
    folder_of: FolderOf, shard: object, says: str
) -> None:
    folder = folder_of("mistral", shards=2)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(BadModel, match=says):
        read_folder(folder)


def test_a_pipe_is_refused_without_waiting(folder_of: FolderOf, mutations: Any) -> None:
    for name in ("model.safetensors", "config.json"):
        folder = folder_of("mistral")
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(BadModel, match="is not a file"), mutations.limited():
            read_folder(folder)
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"num_hidden_layers": 10**6}, "num_hidden_layers must be at most 1024"),
        ({"head_dim": 2**23}, "channels of a head are too many to rotate"),
        ({"num_attention_heads": 2**23, "head_dim": 2**16, "num_key_value_heads": 2**23}, ""),
        ({"vocab_size": 2**23, "hidden_size": 2**23, "head_dim": 8}, ""),
        ({"rope_scaling": {"rope_type": "x" * 10**6}}, "is not supported"),
        ({"hidden_act": "x" * 10**6}, "is not supported"),
    ],
)
def test_absurd_configs_are_refused_in_little_time_and_memory(
    folder_of: FolderOf, mutations: Any, values: dict[str, object], says: str
) -> None:
    folder = folder_of("mistral", **values)
    with pytest.raises(CompilerError) as raised, mutations.limited():
        read_folder(folder)
    assert says[:40] in str(raised.value) or "xxx" in str(raised.value)
    assert len(str(raised.value)) < 3000


@settings(max_examples=18, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_damage_to_a_sharded_folder_is_refused_or_harmless(
    sharded: Path, mutations: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Drop or exchange shards; move, shift or retype tensors."""
    files = mutations.folder_files(sharded)
    shards = sorted(name for name in files if name.endswith(".safetensors"))
    shard = data.draw(st.sampled_from(shards))
    match data.draw(st.sampled_from(("drop", "exchange", "index", "offsets", "dtype", "cut"))):
        case "drop":
            del files[shard]
        case "exchange":
            files[shard], files[shards[0]] = files[shards[0]], files[shard]
        case "index":
            index = json.loads(files["model.safetensors.index.json"])
            name = data.draw(st.sampled_from(sorted(index["weight_map"])))
            index["weight_map"][name] = data.draw(st.sampled_from([*shards, "other", "a/b", ""]))
            files["model.safetensors.index.json"] = json.dumps(index).encode()
        case "cut":
            files[shard] = files[shard][: data.draw(st.integers(0, len(files[shard]) - 1))]
        case kind:
            header, content = split(files[shard])
            name = data.draw(st.sampled_from(sorted(set(header) - {"__metadata__"})))
            if kind == "dtype":
                header[name]["dtype"] = data.draw(st.sampled_from(("F16", "I64", "BOOL", "U4", "")))
            else:
                by = data.draw(st.integers(-64, 64))
                header[name]["data_offsets"] = [n + by for n in header[name]["data_offsets"]]
            files[shard] = joined(header, content)
    folder = tmp_path_factory.mktemp("damaged")
    assert mutations.outcome_of_folder(files, folder) in ("read", "BadModel")


@pytest.mark.long
def test_five_hundred_mutations_are_read_or_raise_typed_errors(
    families: Any, mutations: Any, tmp_path: Path
) -> None:
    draw = random.Random(2026)
    seeds: list[dict[str, bytes]] = []
    for name in ("llama_yarn", "gemma3", "gpt2", "phi3_longrope", "smollm3"):
        folder = families.write_folder(tmp_path / name, families.descriptions()[name])
        seeds.append(mutations.folder_files(folder))
    (tmp_path / "damaged").mkdir()
    outcomes = Counter(
        mutations.outcome_of_folder(
            mutations.mutate_folder(draw, draw.choice(seeds)), tmp_path / "damaged"
        )
        for _ in range(500)
    )
    assert min(outcomes[each] for each in ("read", "BadModel", "UnsupportedModel")) > 10


@pytest.mark.parametrize("path", sorted(CORPUS.glob("folder_*.json")), ids=lambda path: path.stem)
def test_findings_of_the_fuzzer_stay_fixed(mutations: Any, path: Path, tmp_path: Path) -> None:
    mutations.outcome_of_folder(mutations.unpacked(path.read_text()), tmp_path)
