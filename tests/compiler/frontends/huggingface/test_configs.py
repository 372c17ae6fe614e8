"""Each key of ``config.json``, absent, null and given, means what it means to transformers.

The goldens of ``tools/make_config_goldens.py`` have all families × all keys × both major versions.
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from compiler_layer.errors import BadModel, CompilerError, UnsupportedModel
from compiler_layer.frontends.huggingface.decoder import Decoder, Rotary
from compiler_layer.frontends.huggingface.families import FAMILIES, read_decoder

GOLDENS = Path(__file__).resolve().parents[3] / "goldens" / "configs"
ABSENT = "<absent>"
Json = dict[str, Any]

REJECTED = {
    *("hidden_act", "hidden_activation", "activation_function", "layer_types", "is_causal"),
    *("attention_bias", "mlp_bias", "lm_head_bias", "head_dim", "num_key_value_heads"),
    *("attn_logit_softcapping", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"),
    *("add_cross_attention", "use_bidirectional_attention", "partial_rotary_factor"),
}
"""Keys of which a value that transformers computes may be rejected by name."""

REJECTED_IN_ROPE = (
    '"proportional"',
    '"full_attention"',
    '"sliding_attention"',
    '"partial_rotary_factor"',
    '"original_max_position_embeddings": null',
)
"""Parts of rotary embeddings with which some family's is rejected by name."""


@pytest.fixture(scope="module")
def goldens() -> dict[int, Json]:
    """Goldens by major version of transformers."""
    files = {version: GOLDENS / f"transformers_{version}.json.xz" for version in (4, 5)}
    return {each: json.loads(lzma.decompress(file.read_bytes())) for each, file in files.items()}


def described(decoder: Decoder, lengths: list[int]) -> Json:
    """Return a decoder's description in the terms of the goldens."""
    attention, layers = decoder.attention, decoder.layers
    return {
        "vocab_size": decoder.vocab_size,
        "hidden_size": decoder.hidden_size,
        "windows": [layer.window for layer in layers],
        "rotary": [by_length(layer.rotary, lengths) for layer in layers],
        "heads": attention.heads,
        "key_heads": attention.key_heads,
        "head_dim": attention.head_dim,
        "scale": attention.scale,
        "softcap": attention.softcap,
        "epsilon": decoder.norm.epsilon,
        "bias": attention.bias,
        "output_bias": attention.output_bias,
        "mlp_bias": decoder.mlp.bias,
        "inner_size": decoder.mlp.inner_size,
        "activation": decoder.mlp.activation.name,
        "positions": decoder.positions,
        "embedding_scale": decoder.embedding_scale,
        "residual_scale": decoder.residual_scale,
        "parallel": decoder.parallel,
        "tied": decoder.tied_head,
        "head_bias": False,
        "logit_scale": decoder.logit_scale,
        "logit_softcap": decoder.logit_softcap,
    }


def by_length(rotary: Rotary | None, lengths: list[int]) -> list[Any] | None:
    """Return [length, factor, frequencies …] of each length that differs from the one before."""
    if rotary is None:
        return None
    changes: list[Any] = []
    for length in lengths:
        if length > end_of(rotary):
            break
        long = rotary.long and length > rotary.context
        values = [rotary.factor, *(rotary.long if long else rotary.frequencies)]
        if not changes or changes[-1][1:] != values:
            changes.append([length, *values])
    return changes


def end_of(rotary: Rotary) -> float:
    """Return the length above which frequencies are undefined: they change with each length."""
    return rotary.context if rotary.long and math.isnan(rotary.long[0]) else math.inf


def up_to_ends(rotary: list[Any], decoder: Decoder) -> list[Any]:
    """Leave out the frequencies of a golden that are undefined here."""
    ends = [math.inf if layer.rotary is None else end_of(layer.rotary) for layer in decoder.layers]
    return [
        changes and [change for change in changes if change[0] <= end]
        for changes, end in zip(rotary, ends, strict=True)
    ]


def same(one: Any, other: Any) -> bool:
    """Compare nested lists of numbers with the precision of f32."""
    if isinstance(one, list) and isinstance(other, list):
        ones, others = cast(list[Any], one), cast(list[Any], other)
        return len(ones) == len(others) and all(map(same, ones, others))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=2e-6)
    return one == other


def cases(goldens: dict[int, Json], family: str) -> Iterator[tuple[Json, Json, dict[int, Json]]]:
    """Yield the change, the config, and what the versions compute that compute anything."""
    parts = {version: golden[family] for version, golden in goldens.items()}
    for rows in zip(*(part["cases"] for part in parts.values()), strict=True):
        (change, _), (other, _) = rows
        assert change == other
        config = {k: v for k, v in (parts[4]["base"] | change).items() if v != ABSENT}
        pairs = zip(parts.items(), rows, strict=True)
        yield (
            change,
            config,
            {v: part["description"] | row[1] for (v, part), row in pairs if row[1] is not None},
        )


def meaning(change: Json, computed: dict[int, Json], version: str) -> Json | None:
    """Return the right description; None if the config must be rejected.

    ``rope_parameters`` means what transformers 5 computes; for other keys the file's version
    decides, or the version that computes anything.
    """
    if change.get("rope_parameters") and not change.get("rope_scaling"):
        return computed.get(5)
    first = 4 if version == "4.57.6" else 5
    return computed.get(first, computed.get(9 - first))


def may_be_rejected(family: str, change: Json) -> bool:
    """Return whether a config that transformers computes may be rejected by name."""
    text = json.dumps(change)
    old = '"type"' in text
    return (
        bool(REJECTED & set(change))
        or any(part in text for part in REJECTED_IN_ROPE)
        or (old and ('"rope_type"' in text or family == "gemma3_text"))
    )


def unsettled(family: str, change: Json, version: str) -> bool:
    """Return whether no version loads what a version-4 file of that form would mean.

    Transformers 4 rejects names that are read here as its other classes read them; Gemma 3 ignores
    flat ``rope_parameters`` beside an empty scaling.
    """
    scaling: Json = change.get("rope_scaling") or change.get("rope_parameters") or {}
    if family == "granite":
        return version == "4.57.6" and "rope_scaling" in change and "rope_type" not in scaling
    return family == "gemma3_text" and change.get("rope_scaling") == {}


@pytest.mark.matrix
@pytest.mark.parametrize("version", ["4.57.6", "5.24.0"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_means_what_it_means_to_transformers(
    goldens: dict[int, Json], family: str, version: str, tmp_path: Path
) -> None:
    path, lengths = tmp_path / "config.json", goldens[4]["lengths"]
    wrong: list[str] = []
    for change, config, computed in cases(goldens, family):
        path.write_text(json.dumps(config | {"transformers_version": version}))
        right = meaning(change, computed, version)
        try:
            decoder = read_decoder(path)
        except CompilerError as error:
            expected = right is None or may_be_rejected(family, change)
            if not expected or not isinstance(error, BadModel | UnsupportedModel):
                wrong.append(f"{change}: {error}")
            continue
        if unsettled(family, change, version):
            continue
        if right is None:
            wrong.append(f"{change}: computed, but transformers rejects it")
        else:
            found = described(decoder, lengths)
            right = right | {"rotary": up_to_ends(right["rotary"], decoder)}
            keys = [key for key in right if not same(found[key], right[key])]
            wrong += [f"{change}: {key} is {found[key]}, not {right[key]}" for key in keys]
    assert not wrong, "\n".join(wrong)


def test_a_file_without_a_version_means_what_it_means_to_transformers_5(
    goldens: dict[int, Json], tmp_path: Path
) -> None:
    """Transformers 4 ignores the base within ``rope_scaling``; no version alone decides."""
    scaling = {"rope_type": "linear", "factor": 7.0, "rope_theta": 300.0}
    path, found = tmp_path / "config.json", {}
    for version in (None, "4.57.6", "5.24.0"):
        values = goldens[4]["llama"]["base"] | {"rope_scaling": scaling}
        path.write_text(json.dumps(values | {"transformers_version": version}))
        found[version] = read_decoder(path).layers
    assert found[None] == found["5.24.0"] != found["4.57.6"]


LONG = [float(each) for each in range(2, 10)]
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": LONG}
YARN = {"rope_type": "yarn", "factor": 4.0}


@pytest.mark.parametrize(
    ("family", "scaling", "change"),
    [
        ("llama", LLAMA3, {}),
        ("llama", LONGROPE, {}),
        ("llama", YARN | {"factor": None}, {}),
        ("gpt_neox", LLAMA3 | {"partial_rotary_factor": 0.5}, {}),
        ("mistral", YARN, {}),
        ("mistral", LONGROPE, {"head_dim": None, "original_max_position_embeddings": 16}),
    ],
)
def test_a_scaling_that_only_transformers_5_computes_has_all_its_values(
    goldens: dict[int, Json], family: str, scaling: Json, change: Json, tmp_path: Path
) -> None:
    """Transformers 4 would ignore the base and the share within the object, but it fails."""
    base = goldens[4][family]["base"] | {"rope_scaling": scaling | {"rope_theta": 300.0}} | change
    path, found = tmp_path / "config.json", []
    for version in ("4.57.6", "5.24.0"):
        path.write_text(json.dumps(base | {"transformers_version": version}))
        found.append(read_decoder(path).layers[0].rotary)
    assert found[0] == found[1]


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "granite", "llama", "olmo2"])
def test_windows_are_rejected_for_families_without_them(
    goldens: dict[int, Json], family: str, tmp_path: Path
) -> None:
    """The cache of transformers has the windows, and its layers do not."""
    path, base = tmp_path / "config.json", goldens[4][family]["base"]
    path.write_text(json.dumps(base | {"layer_types": ["full_attention"] * 4}))
    read_decoder(path)
    for more in ({}, {"sliding_window": 3}):
        types = ["sliding_attention", "full_attention"] * 2
        path.write_text(json.dumps(base | {"layer_types": types} | more))
        with pytest.raises(UnsupportedModel, match=r"layer_types = .* is not supported"):
            read_decoder(path)


def test_integers_may_be_written_as_floats_after_a_byte_order_mark(
    goldens: dict[int, Json], tmp_path: Path
) -> None:
    path, values = tmp_path / "config.json", goldens[4]["llama"]["base"]
    path.write_text(json.dumps(values))
    plain = read_decoder(path)
    floats = {k: float(v) if type(v) is int else v for k, v in values.items()}
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text(json.dumps(floats), encoding=encoding)
        assert read_decoder(path) == plain
    path.write_text(json.dumps(values | {"num_hidden_layers": 4.5}))
    with pytest.raises(BadModel, match=r"num_hidden_layers must be a positive integer .* not 4\.5"):
        read_decoder(path)
