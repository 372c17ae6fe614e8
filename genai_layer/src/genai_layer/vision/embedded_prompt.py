"""Inputs of the language model: embeddings and positions of a prompt with images and videos.

The positions of tokens, images and videos are rotary (M-RoPE).

Source: docs/reference/genai.md#positions-of-images, docs/reference/genai.md#videos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.runtime import Array
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.patches import Grid
from genai_layer.vision.prompt_tags import Kind
from genai_layer.vision.shaped_model import TextEmbeddings

Positions = npt.NDArray[np.int64]
"""Time, row and column of each token, i64 [3, n]."""


def positions_of(
    ids: npt.NDArray[np.int64], grids: Iterable[Grid], pads: Sequence[int], time_step: int
) -> Positions:
    """Return the positions of a prompt's tokens.

    Args:
        ids: the prompt, i64 [n].
        grids: sizes of the images and videos in tokens, in the order of their places in the prompt.
        pads: the ids at the places of images and videos.
        time_step: difference in time of adjacent groups of frames.
    """
    parts: list[Positions] = []
    places = np.isin(ids, pads)
    done = following = 0
    for grid in grids:
        start = done + int(np.argmax(places[done:]))
        parts.append(_text(following, start - done))
        following += start - done
        visual = following + _visual(grid, time_step)
        parts.append(visual)
        following = int(visual.max()) + 1
        done = start + grid.count
    parts.append(_text(following, len(ids) - done))
    return np.concatenate(parts, axis=1)


def _text(first: int, count: int) -> Positions:
    return np.tile(np.arange(first, first + count), (3, 1))


def _visual(grid: Grid, time_step: int) -> Positions:
    sizes = grid.time, grid.height, grid.width
    return np.indices(sizes).reshape(3, -1) * [[time_step], [1], [1]]


class EmbeddedPrompt:
    """Prompt whose image and video tokens have embeddings; makes the language model's inputs.

    Args:
        ids: the prompt.
        visuals: the images and videos in the order of their places.
        pads: the ids at the places, by kind.
        time_step: difference in time of adjacent groups of a video's frames.
        text: embeddings of token ids.

    Raises:
        PromptError: the prompt has other numbers of image or video tokens than the visuals.
        RuntimeFailure: the runtime failed.
    """

    def __init__(
        self,
        ids: Sequence[int],
        visuals: Sequence[EncodedVisual],
        pads: Mapping[Kind, int],
        time_step: int,
        text: TextEmbeddings,
    ) -> None:
        prompt = np.array(ids, np.int64)
        for kind, pad in pads.items():
            found = int((prompt == pad).sum())
            tokens = sum(each.grid.count for each in visuals if each.kind is kind)
            if found != tokens:
                raise PromptError(
                    f"the prompt has {found} tokens {kind.pad}, but its {kind.name}s have "
                    f"{tokens}; mark places of {kind.name}s by tags, and use a chat template that "
                    "keeps them"
                )
        self._text = text
        self._embeddings = text.embed(prompt)
        at = [*pads.values()]
        if visuals:
            embedded = np.concatenate([each.embeddings for each in visuals])
            self._embeddings[np.isin(prompt, at)] = embedded
        grids = [each.grid for each in visuals]
        self._positions = positions_of(prompt, grids, at, time_step)
        self._shift = int(self._positions.max()) + 1 - len(prompt)

    def __call__(self, ids: npt.NDArray[np.int64], past: int) -> Mapping[str, Array]:
        """Return the inputs for new tokens.

        Args:
            ids: new tokens of the prompt or of texts after it, i64 [rows, n].
            past: number of tokens before them.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        rows, count = ids.shape
        known = self._embeddings[past : past + count]
        embeddings = np.tile(known, (rows, 1, 1))
        later = ids[:, len(known) :]
        if later.size:
            found = self._text.embed(later.reshape(-1)).reshape(*later.shape, -1)
            embeddings = np.concatenate([embeddings, found], axis=1)
        shift = self._shift
        after = np.arange(past + len(known) + shift, past + count + shift, dtype=np.int64)
        given = self._positions[:, past : past + count]
        positions = np.concatenate([given, np.tile(after, (3, 1))], axis=1)
        return {
            "inputs_embeds": embeddings,
            "attention_mask": np.ones((rows, past + count), np.int64),
            "position_ids": np.repeat(positions[:, None], rows, axis=1),
        }
