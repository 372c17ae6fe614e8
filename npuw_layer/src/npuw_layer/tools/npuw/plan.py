"""``npuw plan``."""

from __future__ import annotations

import atexit
import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from compiler_layer.rewriting.garbage import collected_later
from driver_layer.support.command import PATH, Command
from npuw_layer.errors import OptionError
from npuw_layer.options import Options, parse_options
from npuw_layer.tools.npuw.completion import config_option

FORMATS = ("fp16", "int8", "int4")

_EXAMPLES = """\
  npuw plan llama-70b/config.json                    for NPU 4000 and weights of 4 bits
  npuw plan llama-8b --weights int8 --prompt 4096    a prompt of 4,096 tokens, read in chunks
  npuw plan llama-8b --platform mine.toml            for a user-defined device
  npuw plan llama-8b -c KV_CACHE_PRECISION=i8 -c NPUW_LLM_GENERATE_PYRAMID_STEPS=256,1152
  npuw plan llama-8b --json | jq '.stages[].ms'      as JSON

MODEL is a Hugging Face folder, or its config.json. No other file is read or downloaded: the weights
need not exist, nor fit this machine. `npuw options` lists the options for -c. int4 is the format of
`npuc export --weight-format int4` and of OpenVINO's exporter: 4 bits in groups with zero points,
and 8 bits for the embedding and the LM head.

TTFT is the time to the first token after a prompt of --prompt tokens; tokens/s is the rate of a
conversation that runs in a variant. Times are the simulated device's, without the host's.
"""


@click.command("plan", cls=Command, epilog=_EXAMPLES)
@click.argument("model", type=PATH)
@click.option("--platform", help="3720, 4000, 5010, or a platform file (.toml); default 4000")
@click.option("--weights", type=click.Choice(FORMATS), default="int4", help="default int4")
@click.option(
    "--group-size",
    type=int,
    metavar="N",
    help="group size of int4; -1: one group per channel; default: the largest of 128, 64, 32 that "
    "divides a weight's width",
)
@click.option("--sym", is_flag=True, help="symmetric weights, without zero points")
@click.option("--prompt", type=int, metavar="N", help="longest prompt, in tokens; default 1024")
@click.option(
    "--response", type=int, metavar="N", help="minimum tokens after the prompt; default 128"
)
@config_option
@click.option("--json", "as_json", is_flag=True, help="print a JSON object")
def plan_command(
    model: Path,
    platform: str | None,
    weights: str,
    group_size: int | None,
    sym: bool,
    prompt: int | None,
    response: int | None,
    config: Sequence[str],
    as_json: bool,
) -> None:
    """Predict memory and speed of a model from its config.json."""
    named = (
        ("NPU_PLATFORM", "--platform", platform),
        ("NPUW_LLM_MAX_PROMPT_LEN", "--prompt", prompt),
        ("NPUW_LLM_MIN_RESPONSE_LEN", "--response", response),
    )
    options = parse_options(_config(config, named))
    # Freeze at exit: the process frees all objects anyway, so a last collection would waste time.
    atexit.register(gc.freeze)
    with collected_later():  # imports create many objects, too
        _plan(model, options, (weights, group_size, sym), as_json)


def _plan(
    model: Path, options: Options, weights: tuple[str, int | None, bool], json_wanted: bool
) -> None:
    # Imported here: --help loads no compiler.
    from compiler_layer.errors import CompilerUsageError
    from compiler_layer.quantize.schemes import Format
    from npuw_layer.plan import plan_model
    from npuw_layer.tools.npuw.plan_report import as_json, as_text

    name = weights[0]
    try:
        form = None if name == "fp16" else Format(*weights)
    except CompilerUsageError as error:
        raise OptionError(str(error)) from None
    plan = plan_model(model, options, form)
    if json_wanted:
        print(json.dumps(as_json(plan, options, name), indent=2))
        return
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    for line in as_text(plan, options, name, unicode):
        print(line if unicode else line.replace("µ", "u"))


def _config(settings: Sequence[str], named: Sequence[tuple[str, str, Any]]) -> dict[str, Any]:
    """Collect options from -c and from their own flags.

    Raises:
        OptionError: an option is given twice, or has no value.
    """
    config: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"-c {text}: write options as NAME=VALUE")
        if name in config:
            raise OptionError(f"-c {name} is given twice; leave one out")
        config[name] = value
    for name, flag, value in named:
        if value is not None and name in config:
            raise OptionError(f"{flag} and -c {name} set the same option; leave one out")
        if value is not None:
            config[name] = value
    return config
