"""``npuw passes`` and ``npuw graph``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from driver_layer.support.command import PATH, Command
from npuw_layer.errors import OptionError
from npuw_layer.options import parse_options
from npuw_layer.tools.npuw.completion import config_option

_EXAMPLES = """\
  npuw graph models/demo                                     its static models, and their passes
  npuw graph models/demo --stage prefill_1024 | less         a graph as compiled
  npuw graph models/demo --stage generate_1152 --print-after store-caches
  npuw graph models/demo -c KV_CACHE_PRECISION=u8 -c NPUW_LLM_BATCH_SLOTS=1,4
  npuw graph models/demo --stage lm_head > head.mlir         npuc print head.mlir reads it

MODEL is the .xml of a stateful language model, or a Hugging Face folder. `npuw options` lists the
options for -c, `npuw passes` the passes of all models. Shapes are not propagated through the graph
here; `npuc run-pass specialize-shapes` does that.
"""


@click.command("passes", cls=Command)
def passes_command() -> int:
    """List the passes that make a stateful language model static, in order."""
    from npuw_layer.llm.graph.pipeline import core_passes
    from npuw_layer.llm.plan.stages import Stage, StageKind

    stages = Stage(StageKind.PREFILL, 64, 0), Stage(StageKind.HEAD, 1, 0)
    options = [parse_options({"NPUW_LLM_SHARED_HEAD": shared}) for shared in ("YES", "NO")]
    every = (
        core_passes(stage, each, lambda tokens, past: ()) for stage in stages for each in options
    )
    kinds = {each.name: type(each) for passes in every for each in passes}
    for name, kind in kinds.items():
        print(f"{name:<22} {(kind.__doc__ or '').splitlines()[0]}")
    return 0


@click.command("graph", cls=Command, epilog=_EXAMPLES)
@click.argument("path", type=PATH, metavar="MODEL")
@click.option("--stage", help="a static model; without it, all are listed")
@click.option("--print-after", metavar="PASS", help="stop after a pass of the stage")
@config_option
def graph_command(
    path: Path, stage: str | None, print_after: str | None, config: tuple[str, ...]
) -> int:
    """Print a language model's graph of one stage, after any pass."""
    # Imported here: --help loads no compiler.
    from npuw_layer.llm.graph.pipeline import run_passes, stage_passes
    from npuw_layer.llm.plan.stages import plan
    from npuw_layer.storage.read_model import read_model

    model = read_model(path)
    if bare := [text for text in config if "=" not in text]:
        raise OptionError(f"-c {bare[0]}: write options as NAME=VALUE")
    options = parse_options(dict(text.split("=", 1) for text in config))
    stages = {each.name: each for each in plan(options).stages}
    if stage is None:
        for name, planned in stages.items():
            names = " ".join(each.name for each in stage_passes(model, planned, options))
            print(f"{name:<22} {names}")
        return 0
    if stage not in stages:
        raise OptionError(f"--stage {stage}: no such stage; the model has {', '.join(stages)}")
    passes = stage_passes(model, stages[stage], options, check=True)
    names = [each.name for each in passes]
    if print_after is not None and print_after not in names:
        raise OptionError(
            f"--print-after {print_after}: not a pass of the stage: {', '.join(names)}"
        )
    graph = model.clone()
    run_passes(graph, passes[: names.index(print_after) + 1] if print_after else passes)
    sys.stdout.write(graph.text())
    return 0
