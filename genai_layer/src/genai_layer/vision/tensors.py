"""Tensors of pixels that callers pass, one or several.

Source: openvino_genai.VLMPipeline.generate, docs/reference/genai.md#vision-language-models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from genai_layer.errors import PromptError
from genai_layer.tensor import HasData, array_of, is_tensor

PixelsLike = HasData | npt.NDArray[Any]


def arrays_of(name: str, given: PixelsLike | Sequence[PixelsLike] | None) -> list[npt.NDArray[Any]]:
    """Return the arrays of an argument.

    Args:
        name: name of the argument, for messages.
        given: one tensor, several, or None.

    Raises:
        PromptError: the argument is something else.
    """
    if given is None:
        return []
    if isinstance(given, np.ndarray) or is_tensor(given):
        return [array_of(given)]
    if not isinstance(given, list | tuple):
        raise PromptError(
            f"{name}: {type(given).__name__} is not supported; pass a tensor or a list of tensors"
        )
    return [array_of(tensor) for tensor in cast("Sequence[PixelsLike]", given)]
