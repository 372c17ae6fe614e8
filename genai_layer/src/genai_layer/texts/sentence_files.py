"""Settings of an embedding model in the files of sentence-transformers.

    modules.json                        what follows the model: pooling, normalisation
    N_Pooling/config.json               modes of pooling
    sentence_bert_config.json           maximum length
    config_sentence_transformers.json   prompts of queries and documents

Parameters that the caller sets, even to their defaults, precede the files. Without ``modules.json``
the defaults apply.

Source: sentence-transformers 5.7 and 6.2, docs/reference/genai.md#files-of-sentence-transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file, read_object, read_text
from genai_layer.texts.config import EmbeddingConfig
from genai_layer.texts.pooling import MODES, modes_of

_PACKAGE = "sentence_transformers."
_MODULES = "modules.json"
_PROMPTS = "config_sentence_transformers.json"
_LENGTHS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Modes by the flag that older files have, in the order of joining."""
_HIDDEN_STATES = {"method": "forward", "method_output_name": "last_hidden_state"}
"""Settings of a model that passes on the hidden states of texts."""


def complete(
    config: EmbeddingConfig, folder: Path, limit: int | None
) -> tuple[EmbeddingConfig, tuple[str, ...]]:
    """Complete parameters by the files of a folder.

    Args:
        config: the caller's parameters.
        folder: the model's folder.
        limit: maximum number of tokens in the tokenizer's settings.

    Returns:
        The parameters, and the modes of pooling.

    Raises:
        ModelError: a file is broken, or has a setting that is not supported.
    """
    if not is_file(folder / _MODULES):
        _check_alone(folder)
        return config, modes_of(config.pooling_type)
    places = _read_modules(folder / _MODULES)
    prompts = _read_prompts(folder / _PROMPTS)
    found = {
        "normalize": "Normalize" in places,
        "max_length": _read_length(folder / places["Transformer"]) or _least(folder, limit),
        "query_instruction": prompts.get("query", ""),
        "embed_instruction": prompts.get("document", ""),
    }
    given = config.model_fields_set
    completed = config.model_copy(
        update={name: value for name, value in found.items() if name not in given}
    )
    if "pooling_type" in given:
        return completed, modes_of(config.pooling_type)
    if "Pooling" not in places:
        raise ModelError(f"{folder / _MODULES}: has no Pooling; set pooling_type")
    return completed, _read_modes(folder / places["Pooling"] / "config.json")


def _least(folder: Path, limit: int | None) -> int | None:
    """Return the lesser of the tokenizer's limit and the number of the model's positions."""
    positions = read_object(folder / "config.json").get("max_position_embeddings")
    return min(
        (each for each in (limit, positions) if type(each) is int and each > 0), default=None
    )


def _check_alone(folder: Path) -> None:
    """Reject files that only a ``modules.json`` gives a meaning."""
    for name in ("1_Pooling/config.json", *_LENGTHS, _PROMPTS):
        if is_file(folder / name):
            raise ModelError(
                f"{folder / name}: has no effect without modules.json; copy that file from the "
                "model's folder, or remove this one"
            )


def _read_modules(path: Path) -> dict[str, str]:
    """Return the folder of each module by its class: a model, its pooling, normalisation."""
    try:
        entries = json.loads(read_text(path))
        found = [(_class(str(entry["type"])), str(entry["path"])) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelError(f"{path}: not a list of modules with type and path: {error}") from error
    modules = [each for each in found if each[0] != "Dropout"]  # without effect on inference
    kinds = [kind for kind, _ in modules]
    if kinds not in _SUPPORTED:
        raise ModelError(
            f"{path}: modules {', '.join(kinds) or '(none)'} are not supported; use a model of "
            "Transformer, Pooling and perhaps Normalize"
        )
    return dict(modules)


def _class(name: str) -> str:
    """Return the name of sentence-transformers' class; other names are unchanged."""
    return name.rpartition(".")[2] if name.startswith(_PACKAGE) else name


_SUPPORTED = (
    ["Transformer"],
    ["Transformer", "Pooling"],
    ["Transformer", "Normalize"],
    ["Transformer", "Pooling", "Normalize"],
)


def _read_modes(path: Path) -> tuple[str, ...]:
    """Return the modes in a Pooling's ``config.json``."""
    if not is_file(path):
        raise ModelError(f"{path}: no such file; copy it from the model, or set pooling_type")
    values = read_object(path)
    for name, value in values.items():
        known = _POOLING.get(name)
        _check(known is not None and known(value), path, name, values, "set pooling_type")
    flags = [mode for name, mode in _FLAGS.items() if values.get(name)]
    given = values.get("pooling_mode") or flags or ["mean"]
    return (given,) if isinstance(given, str) else tuple(given)


def _are_modes(value: object) -> bool:
    modes = cast("Sequence[object]", value if isinstance(value, list) else [value])
    return all(isinstance(mode, str) and mode in MODES for mode in modes)


def _are_texts(value: object) -> bool:
    texts = cast("dict[str, object]", value).values() if isinstance(value, dict) else [0]
    return all(text is None or isinstance(text, str) for text in texts)


def _is_count(value: object) -> bool:
    return value is None or (type(value) is int and value > 0)


def _is_anything(_: object) -> bool:
    return True


def _gives_hidden_states(value: object) -> bool:
    return isinstance(value, dict) and cast(Any, value).get("text") == _HIDDEN_STATES


_POOLING: Mapping[str, Callable[[object], bool]] = {
    "word_embedding_dimension": _is_anything,
    "embedding_dimension": _is_anything,
    "include_prompt": lambda value: value is True,
    "pooling_mode": _are_modes,
    **dict.fromkeys(_FLAGS, lambda value: isinstance(value, bool)),
}
"""Settings of a Pooling, and their supported values."""

_TRANSFORMER: Mapping[str, Callable[[object], bool]] = {
    "max_seq_length": _is_count,
    "do_lower_case": lambda value: not value,
    "transformer_task": lambda value: value == "feature-extraction",
    "modality_config": _gives_hidden_states,
    "module_output_name": lambda value: value == "token_embeddings",
    "unpad_inputs": _is_anything,  # a matter of speed
}
"""Settings of a Transformer, and their supported values; all others must be empty."""


def _read_length(folder: Path) -> int | None:
    """Return the maximum length in a Transformer's file, if it has one."""
    path = next(
        (folder / name for name in _LENGTHS if is_file(folder / name)), folder / _LENGTHS[0]
    )
    values = read_object(path)
    for name, value in values.items():
        supported = _TRANSFORMER.get(name, lambda value: not value)
        _check(supported(value), path, name, values)
    return values.get("max_seq_length")


def _read_prompts(path: Path) -> dict[str, str]:
    """Return the prompts by name; the default one is not that of queries or documents."""
    values = read_object(path)
    _check(values.get("truncate_dim") is None, path, "truncate_dim", values)
    prompts: dict[str, str | None] = values.get("prompts") or {}
    default: str | None = values.get("default_prompt_name")
    _check(_are_texts(prompts), path, "prompts", values, "correct the file")
    known = default is None or default in prompts
    _check(known, path, "default_prompt_name", values, "name one of its prompts")
    return {name: prompt or "" for name, prompt in prompts.items()}


def _check(
    fits: bool,
    path: Path,
    name: str,
    values: Mapping[str, Any],
    remedy: str = "use a model without this setting",
) -> None:
    if not fits:
        raise ModelError(f"{path}: {name} = {values.get(name)!r} is not supported; {remedy}")
