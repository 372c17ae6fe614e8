"""The options of a compiled model, under OpenVINO's names. Begin with ``model``.

``llm``, ``devices``, ``partition``, ``storage``, ``reports``, ``stages``, ``plain``, ``mechanisms``
declare groups, ``kinds`` collects those of kinds of models; ``contradictions`` has what excludes
one another; ``parse`` reads a configuration; ``describe`` shows options as rows of a table
(``npuw options``). An option is one field: its alias is OpenVINO's name, type and bounds are the
allowed values, the text below it is its effect.

Source: fact sheet npuw §b; what is this project's own says so.
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
