"""The options of a compiled model, under OpenVINO's names.

    base            what groups are made of: flags as OpenVINO writes them, values that are refused
    lengths … plain the options, a file for each group
    stages          PREFILL_CONFIG, GENERATE_CONFIG, SHARED_HEAD_CONFIG, and how they are merged
    stage_maps      what these may hold, and why not more
    kinds           the options of kinds of models, declared in their folders
    model           all of them together
    ways            which of them are for NPUW, and which for the NPU itself
    run_time        which of them no compiled program depends on
    logs            what is told while models are compiled and run
    mechanisms      options of the original whose values come to the same here
    contradictions  options that exclude one another
    absent          options of the original that are not here, and why
    parse           from a mapping to options, with errors that say what would be right
    effects         what each does, in words
    describe        each option as a table shows it; ``npuw options`` prints that

An option is one field: its alias is OpenVINO's name, its type and bounds are what is allowed, and
the text below it says what it does. Nothing else knows the list.

Source: fact sheet npuw §b; what is this project's own says so.
"""

from npuw_layer.options.absent import ABSENT
from npuw_layer.options.describe import Described, describe
from npuw_layer.options.model import GROUPS, NAMES, Options
from npuw_layer.options.names import nearest
from npuw_layer.options.parse import parse_options
from npuw_layer.options.run_time import RUN_TIME

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
