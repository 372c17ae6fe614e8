"""Saved conversations: the token history and rows of K and V in a file.

The format is safetensors: a tensor [tokens, heads, width] for each variable, and the token history
as metadata. Embeddings that may have to be read again are tensors [tokens, width]. A digest detects
damage; a forged file may have a matching digest, so all other content is checked too. The file has
no adapters, only their identity: set the same adapters before continuing a conversation.

Source: the format of safetensors (8 bytes of length, a JSON header, the tensors' bytes).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field, ValidationError

from driver_layer.support.files import content_digest, looking_at, open_regular
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import NpuwFault, StateError, TensorError
from npuw_layer.llm.kv.row_layouts import is_cache_input
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.history import SavedHistory
from npuw_layer.storage.cache.known_files import KnownFiles
from npuw_layer.storage.cache.replace import replacing
from npuw_layer.storage.manifest import Record
from npuw_layer.tensors.names import IDS
from npuw_layer.tensors.token_inputs import check_ids

_LENGTH_BYTES = 8
_MAX_HEADER = 1 << 28
_DTYPES = {
    "float32": "F32",
    "float16": "F16",
    "uint16": "BF16",
    "int8": "I8",
    "uint8": "U8",
    "int64": "I64",
}
"""Element types by numpy's; bf16 are raw bits, f8 raw bytes whose format the model determines."""

_VERSION = "2"
_REMEDY = "load another copy, or begin the conversation again"
_INPUTS_PREFIX = "said."
"""Prefix of the name of an input that follows tokens."""
_UNKNOWN = -1
"""Id of a token without an id: its rows were set from outside, or it is an embedding."""

_MAX_COUNT = 1 << 31
Count = Annotated[int, Field(ge=0, lt=_MAX_COUNT)]


class _SavedConversation(Record):
    """Metadata entry ``conversation``."""

    first_position: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
    """Any i64: callers may begin at any position if no RoPE tables exist."""
    ids: list[Annotated[int, Field(ge=-1, lt=1 << 31)]]
    sinks: Count
    dropped: Count
    numbers: list[Count]
    """Numbers of the tokens whose rows are stored."""
    adapters: str = ""
    """Identity of the settings in force, hexadecimal; see ``Parts.digest``."""


class _Metadata(Record):
    """Header entry ``__metadata__``; safetensors allows only strings in it."""

    version: str
    model: str
    conversation: str
    digest: str = ""
    """SHA-256 of the header without this entry, and of all tensors; hexadecimal."""


class _Tensor(Record):
    """Header entry of a tensor."""

    dtype: str
    shape: list[Count]
    data_offsets: list[Count]


def save_state(conversation: Conversation, path: Path) -> None:
    """Write a conversation to a file, which replaces an old one only when complete.

    Raises:
        NpuwFault: the disk is full, the folder is read-only, or the path is not a regular file.
        ModelError: the model's files can no longer be read.
    """
    history, cache = conversation.history, conversation.cache
    saved = _SavedConversation(
        first_position=history.first_position,
        ids=[*[_UNKNOWN] * (history.count - len(history.ids)), *history.ids],
        sinks=history.sinks,
        dropped=history.dropped,
        numbers=cache.rows.numbers().tolist(),
        adapters=conversation.parts.digest.hex(),
    )
    rows = {name: np.ascontiguousarray(cache.read(name)) for name in cache.names}
    rows |= {
        name: np.ascontiguousarray(each) for name, each in conversation.parts.tensors().items()
    }
    rows |= {
        _INPUTS_PREFIX + name: np.array(values)
        for name, values in history.rows.items()
        if name != IDS and values
    }
    metadata = {
        "version": _VERSION,
        "model": _fingerprint(conversation),
        "conversation": saved.model_dump_json(),
    }
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, each in rows.items():
        span = [end, end + each.nbytes]
        dtype = _DTYPES[each.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(each.shape), "data_offsets": span}
        end += each.nbytes
    contents = [each.data for each in rows.values()]
    metadata["digest"] = _digest(header, contents)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    with looking_at(path, NpuwFault), replacing(path) as file:
        file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
        file.writelines(contents)


def load_state(conversation: Conversation, path: Path) -> None:
    """Replace a conversation by a saved one, unless the file is rejected.

    Raises:
        StateError: the file is damaged, of another model, of other adapters than those set, has too
            many tokens, or tokens that none can follow.
        NpuwFault: the file cannot be read.
    """
    with looking_at(path, NpuwFault), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = np.fromfile(file, np.uint8, min(size, _most_bytes(conversation)))
    if content.size != size:
        raise StateError(f"{path}: {size} bytes exceed this model's cache")
    try:
        _restore(conversation, content)
    except (ValueError, RecursionError, ValidationError, KeyError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StateError(f"{path}: not a saved conversation: {first}; {_REMEDY}") from None
    except (StateError, TensorError) as error:
        raise StateError(f"{path}: {error}") from None


def _restore(conversation: Conversation, content: Array) -> None:
    length = int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
    if content.size < _LENGTH_BYTES or length > content.size - _LENGTH_BYTES:
        raise ValueError("it is truncated")
    begin = _LENGTH_BYTES + length
    parsed: object = json.loads(content[_LENGTH_BYTES:begin].tobytes())
    if not isinstance(parsed, dict):
        raise ValueError("its header is not a JSON object")
    header = cast(dict[str, Any], parsed)
    metadata = _Metadata.model_validate(header["__metadata__"])
    if metadata.version != _VERSION:
        raise StateError(
            f"it has version {metadata.version[:20]!r}, not {_VERSION!r}; save the conversation "
            "again with this version"
        )
    given = header["__metadata__"].pop("digest", "")
    if _digest(header, [content[begin:].data]) != given:
        raise StateError(f"the file is damaged: its content is not what was saved; {_REMEDY}")
    del header["__metadata__"]
    if metadata.model != _fingerprint(conversation):
        raise StateError("it was saved with another model, or with other options")
    saved = _SavedConversation.model_validate_json(metadata.conversation)
    if saved.adapters != conversation.parts.digest.hex():
        with_or_without = "with other adapters" if saved.adapters else "without adapters"
        raise StateError(
            f"it was saved {with_or_without}; set the same ones by query_state() before load_state"
        )
    _check_saved(conversation, saved)
    rows = _tensors(conversation, header, content[begin:], len(saved.numbers))
    conversation.restore(
        SavedHistory(
            saved.first_position,
            len(saved.ids),
            saved.sinks,
            saved.dropped,
            _given(conversation, header, content[begin:], saved),
        ),
        np.array(saved.numbers, np.int64),
        {name: rows[name] for name in conversation.cache.names},
        {name: rows[name] for name in conversation.parts.tensors()},
    )


def _digest(header: Mapping[str, Any], contents: Iterable[memoryview]) -> str:
    """Return the hexadecimal digest of a header, without its digest, and of the tensors' bytes."""
    return content_digest([json.dumps(header).encode(), *contents]).hex()


def _check_saved(conversation: Conversation, saved: _SavedConversation) -> None:
    """Reject tokens that do not fit one another, or the cache."""
    numbers, room = saved.numbers, len(conversation.cache.rows)
    if len(numbers) > room:
        raise StateError(f"it has {len(numbers)} tokens, but there is room for {room}")
    ascending = all(a < b for a, b in pairwise(numbers))
    newest = not saved.ids or (numbers and numbers[-1] == len(saved.ids) - 1)
    if not ascending or not newest or len(numbers) > len(saved.ids) or saved.sinks > len(saved.ids):
        raise ValueError("its tokens do not fit one another")
    if len(saved.ids) + saved.dropped >= _MAX_COUNT:
        raise ValueError(f"it states {saved.dropped} dropped tokens")


def _tensors(
    conversation: Conversation, header: Mapping[str, Any], data: Array, tokens: int
) -> dict[str, Array]:
    """Return the rows of all K and V variables, and the variables of parts, of fixed size."""
    cache, parts = conversation.cache, conversation.parts.tensors()
    if {name for name in header if not name.startswith(_INPUTS_PREFIX)} != {*cache.names, *parts}:
        raise ValueError("its variables are not the model's")
    likes = {name: cache.read(name) for name in cache.names}
    found = {
        name: _tensor(header, name, data, like.dtype, (tokens, *like.shape[1:]))
        for name, like in likes.items()
    }
    for name, like in parts.items():
        found[name] = _tensor(header, name, data, like.dtype, like.shape)
    return found


def _given(
    conversation: Conversation, header: Mapping[str, Any], data: Array, saved: _SavedConversation
) -> dict[str, Array]:
    """Return the input values of the last tokens, as far as the file has them."""
    ids = np.array(saved.ids, np.int64)
    unknown = np.flatnonzero(ids == _UNKNOWN)
    if not np.array_equal(unknown, np.arange(len(unknown))):
        raise ValueError("unknown tokens follow known ones")
    found = {IDS: ids[len(unknown) :]}
    check_ids(found[IDS], conversation.compiled.vocabulary)
    inputs = {_INPUTS_PREFIX + one.name: one for one in conversation.compiled.token_inputs}
    for name in (name for name in header if name.startswith(_INPUTS_PREFIX)):
        if name not in inputs or name == _INPUTS_PREFIX + IDS:
            raise ValueError(f"it has the unknown tensor {name}")
        port = inputs[name]
        count = _Tensor.model_validate(header[name]).shape[:1]
        if not count or count[0] > len(ids):
            raise ValueError(f"{name} does not fit the tokens")
        dtype = ELEMENT_TYPES[port.element]
        found[port.name] = _tensor(header, name, data, dtype, (*count, *port.each))
    wanted = [found[one.name] for one in conversation.compiled.token_inputs if one.name in found]
    if len({len(rows) for rows in wanted}) > 1:
        raise ValueError("its tokens do not fit one another")
    return found


def _tensor(
    header: Mapping[str, Any], name: str, data: Array, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Array:
    """Read a tensor.

    Raises:
        ValueError: the tensor is of another type or shape, or truncated.
    """
    tensor = _Tensor.model_validate(header[name])
    begin, *end = tensor.data_offsets
    nbytes = int(np.prod(shape)) * dtype.itemsize
    if (tensor.dtype, tuple(tensor.shape)) != (_DTYPES[dtype.name], shape):
        raise ValueError(f"{name} is {tensor.dtype} {tensor.shape}")
    if end != [begin + nbytes] or begin + nbytes > data.size:
        raise ValueError(f"{name} is truncated")
    return np.frombuffer(data[begin : begin + nbytes].tobytes(), dtype).reshape(shape)


def _fingerprint(conversation: Conversation) -> str:
    """Return an identity of all that rows depend on: weights and precision."""
    compiled = conversation.compiled
    options, (generate, *_) = compiled.options, compiled.plan.generate
    digest, kept_in = (
        compiled.sources.identity(KnownFiles(options.cache_folder)),
        options.kv_element,
    )
    # NPUW_LLM_OPTIMIZE_FP8 has no effect on a model that does not round K and V itself.
    inputs = compiled.models[generate].inputs
    rounds = any(is_cache_input(info) and info.element.startswith("f8") for info in inputs)
    if options.optimize_fp8 and rounds:
        kept_in = f"{kept_in} as the model rounds"
    return f"{digest} {options.precision} {kept_in}"


def _most_bytes(conversation: Conversation) -> int:
    rows = (math.prod(one.each) * 8 for one in conversation.compiled.token_inputs)
    own = conversation.cache.most_bytes + conversation.parts.nbytes(persists=False)
    return own + len(conversation.cache.rows) * sum(rows) + _MAX_HEADER
