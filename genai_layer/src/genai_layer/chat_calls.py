"""Warnings of the calls that openvino_genai deprecates: start_chat and finish_chat."""

from __future__ import annotations

import warnings


def warn_of_chat_call(name: str) -> None:
    """Warn that a method of a pipeline is deprecated; the warning names the method's caller."""
    # Above this function are the method, and the wrapper of ``one_at_a_time``.
    warnings.warn(
        f"{name} is deprecated, as in openvino_genai; pass a ChatHistory to generate",
        DeprecationWarning,
        stacklevel=4,
    )
