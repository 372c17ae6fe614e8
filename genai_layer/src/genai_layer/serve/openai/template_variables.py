"""Variables that a request sets for a model's chat template.

Source: docs/reference/openai.md#fields-of-vllm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genai_layer.serve.openai.schemas.base import Effort


def template_variables(
    effort: Effort | None, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the variables of an effort of reasoning, and others that a request has.

    A template may read the effort, or only whether the model reasons at all.
    """
    others = dict(given or {})
    if effort is None:
        return others
    return {"enable_thinking": effort != "none", **others, "reasoning_effort": effort}
