"""``npuw plan``."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import sys
from pathlib import Path
from typing import Any

from compiler_layer.rewriting.garbage import collected_later
from compiler_layer.tools.command import Commands, declare
from npuw_layer.errors import OptionError
from npuw_layer.options import Options, parse_options

FORMATS = ("fp16", "int8", "int4")

_EXAMPLES = """\
  npuw plan llama-70b/config.json                    on NPU 4000, weights in 4 bits
  npuw plan llama-8b --weights int8 --prompt 4096    a prompt of 4,096 tokens, read in chunks
  npuw plan llama-8b --platform mine.toml            on a device with your numbers
  npuw plan llama-8b -c KV_CACHE_PRECISION=i8 -c NPUW_LLM_GENERATE_PYRAMID_STEPS=256,1152
  npuw plan llama-8b --json | jq '.stages[].ms'      for programs

Nothing but config.json is read, and nothing is fetched: the weights need not exist, nor fit this
machine. `npuw options` lists what -c takes. int4 means what `npuc export --weight-format int4` and
the exporter of OpenVINO make: 4 bits in groups of 128 with zero points, 8 bits for embedding and
head.

TTFT is the time to the first token after a prompt of --prompt tokens; tokens/s that of a
conversation that runs in a variant. Times are those of the simulated device, without the host's.
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(
        commands,
        "plan",
        _run,
        "predict memory and speed of a model from its config.json alone",
        _EXAMPLES,
    )
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="a Hugging Face folder, or its config.json"
    )
    parser.add_argument("--platform", help="3720, 4000, 5010, or a file (.toml) of your own; 4000")
    parser.add_argument("--weights", choices=FORMATS, default="int4", help="int4 if not given")
    parser.add_argument(
        "--group-size", type=int, default=128, metavar="N", help="of int4; -1: a whole channel; 128"
    )
    parser.add_argument("--sym", action="store_true", help="no zero points")
    parser.add_argument("--prompt", type=int, metavar="N", help="longest prompt, in tokens; 1024")
    parser.add_argument("--response", type=int, metavar="N", help="least room after it; 128")
    parser.add_argument(
        "-c",
        dest="config",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="an option of the compiled model; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _run(arguments: argparse.Namespace) -> int:
    options = parse_options(_config(arguments))
    # What there is at the end goes with the process: it need not be searched for what is dead.
    atexit.register(gc.freeze)
    with collected_later():  # modules are objects, too
        return _plan(arguments, options)


def _plan(arguments: argparse.Namespace, options: Options) -> int:
    # Imported here: who asks for help need not wait for the compiler.
    from compiler_layer.errors import CompilerUsageError
    from compiler_layer.quantize.schemes import Format
    from npuw_layer.plan import plan_model
    from npuw_layer.tools.npuw.plan_report import as_json, as_text

    try:
        name = arguments.weights
        form = None if name == "fp16" else Format(name, arguments.group_size, arguments.sym)
    except CompilerUsageError as error:
        raise OptionError(str(error)) from None
    plan = plan_model(arguments.model, options, form)
    if arguments.json:
        print(json.dumps(as_json(plan, options, name), indent=2))
        return 0
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    for line in as_text(plan, options, name, unicode):
        print(line)
    return 0


def _config(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that are given, by -c or under names of their own.

    Raises:
        OptionError: one is given twice, or has no value.
    """
    config: dict[str, Any] = {}
    for text in arguments.config:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"-c {text}: an option is given as NAME=VALUE")
        if name in config:
            raise OptionError(f"-c {name} is given twice; leave one out")
        config[name] = value
    for name, flag, value in (
        ("NPU_PLATFORM", "--platform", arguments.platform),
        ("NPUW_LLM_MAX_PROMPT_LEN", "--prompt", arguments.prompt),
        ("NPUW_LLM_MIN_RESPONSE_LEN", "--response", arguments.response),
    ):
        if value is not None and name in config:
            raise OptionError(f"{flag} and -c {name} say the same; leave one out")
        if value is not None:
            config[name] = value
    return config
