"""The options of a compiled model, under OpenVINO's names. Begin with ``model``.

``llm``, ``devices``, ``partition``, ``storage``, ``reports``, ``stages``, ``plain``, ``mechanisms``
declare groups; ``kinds`` collects the groups of kinds of models; ``contradictions`` checks
combinations; ``parse`` reads a configuration; ``describe`` returns options as rows of a table
(``npuw options``). An option is one field: the alias is OpenVINO's name, type and bounds are the
allowed values, and the text below describes the effect.

Source: docs/reference/npuw.md#options; options of this project are marked as such.
"""

from npuw_layer.options.base import nearest
from npuw_layer.options.describe import Described, describe
from npuw_layer.options.mechanisms import ABSENT
from npuw_layer.options.model import GROUPS, NAMES
from npuw_layer.options.parse import Options, parse_options
from npuw_layer.options.stages import RUN_TIME

__all__ = [
    "ABSENT",
    "GROUPS",
    "NAMES",
    "RUN_TIME",
    "Described",
    "Options",
    "describe",
    "nearest",
    "parse_options",
]
