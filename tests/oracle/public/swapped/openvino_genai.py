"""Replacement of the module ``openvino_genai`` by genai_layer.

``PYTHONPATH=tests/oracle/public/swapped python script.py`` runs an unchanged script on genai_layer.
Test files import names that genai_layer does not have; these are classes that cannot be created.
"""

import sys
from typing import Any

import genai_layer

ABSENT = ("EmbeddingPipeline",)


def _reject(self: object, *_: Any, **__: Any) -> None:
    raise NotImplementedError(f"{type(self).__name__}: genai_layer does not have it")


for name in ABSENT:
    setattr(genai_layer, name, type(name, (), {"__init__": _reject}))
sys.modules[__name__] = genai_layer
