"""Inputs of the language model: embeddings and positions of a prompt with images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.runtime import Array
from genai_layer.vision.encoder import EncodedImage
from genai_layer.vision.positions import positions_of
from genai_layer.vision.prompt_tags import PAD
from genai_layer.vision.text_embeddings import TextEmbeddings


class EmbeddedPrompt:
    """Prompt whose image tokens have the embeddings of images; makes the language model's inputs.

    Args:
        ids: the prompt.
        images: the images in the order of their places.
        pad: the id at the places of images.
        text: embeddings of token ids.

    Raises:
        PromptError: the prompt has other numbers of image tokens than the images.
        RuntimeFailure: the runtime failed.
    """

    def __init__(
        self, ids: Sequence[int], images: Sequence[EncodedImage], pad: int, text: TextEmbeddings
    ) -> None:
        prompt = np.array(ids, np.int64)
        places = prompt == pad
        tokens = sum(len(image.embeddings) for image in images)
        if places.sum() != tokens:
            raise PromptError(
                f"the prompt has {places.sum()} tokens {PAD}, but its images have {tokens}; mark "
                "places of images by tags, and use a chat template that keeps them"
            )
        self._text = text
        self._embeddings = text.embed(prompt)
        if images:
            self._embeddings[places] = np.concatenate([image.embeddings for image in images])
        self._positions = positions_of(prompt, [image.grid for image in images], pad)
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
