"""npu-run: runs a program on the simulated NPU.

The program finds the simulated NPU as it would find a real one: by the library libze_loader.so.1.
Any program that uses Level Zero or OpenVINO can be run, in any language, unchanged.

Examples:
    npu-run -- python script.py                a script that uses openvino, on "NPU"
    npu-run --platform 5010 -- ./application   on another NPU
    npu-run --log-calls -- python script.py    each call of Level Zero, on stderr
    npu-run --check                            what is there, what is missing
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, entry_points, version

import click

from driver_layer import ze
from driver_layer.c_abi import CALLS_VARIABLE
from driver_layer.c_abi.build import compiler, library
from driver_layer.errors import BuildError, ZeError
from driver_layer.support.command import Command, complain, run
from driver_layer.ze.graph_compiler import GROUP


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        2 if the program cannot be run, 1 if --check found something missing; else the program's
        exit code, as the program replaces this process.
    """
    return run(_npu_run, argv, (BuildError, ZeError))


@click.command("npu-run", cls=Command, help=__doc__, no_args_is_help=True)
@click.option("--platform", help="3720, 4000, 5010, a code name such as LUNARLAKE, or a .toml file")
@click.option("--log-calls", is_flag=True, help="print each call with its result and time")
@click.option(
    "--check", is_flag=True, help="tell what is installed and what is missing; run nothing"
)
@click.argument("program", nargs=-1)
def _npu_run(platform: str | None, log_calls: bool, check: bool, program: tuple[str, ...]) -> int:
    if platform is not None:
        ze.simulated_driver(platform)  # rejects an unknown name now, not in the program
    if check:
        return _print_findings()
    if not program:
        raise click.UsageError("no program given: npu-run -- python script.py")
    if shutil.which(program[0]) is None:
        return complain("npu-run", f"{program[0]}: no such program")
    os.execvpe(program[0], program, environment(platform, log_calls))


def environment(platform: str | None = None, log_calls: bool = False) -> dict[str, str]:
    """Return the environment in which a program finds the simulated NPU.

    Args:
        platform: name of the platform; None leaves the choice to the environment.
        log_calls: True logs each call.

    Raises:
        BuildError: the library cannot be built.
    """
    variables = dict(os.environ)
    folders = [str(library() / "loader"), *filter(None, [variables.get("LD_LIBRARY_PATH")])]
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    if platform is not None:
        variables["ZE_INTEL_NPU_PLATFORM_OVERRIDE"] = platform
    if log_calls:
        variables[CALLS_VARIABLE] = "1"
    return variables


def _print_findings() -> int:
    found = list(_findings())
    for name, present, text in found:
        print(f"{'ok' if present else 'MISSING':8}{name:22}{text}")
    return 0 if all(present for _, present, _ in found) else 1


def _findings() -> Iterator[tuple[str, bool, str]]:
    """Iterate over all that is needed: its name, whether it is there, and where, or what to do."""
    command = compiler()
    remedy = "install a C compiler as cc, or pip install ziglang"
    yield "C compiler", command is not None, " ".join(command) if command else remedy
    try:
        yield "library", True, str(library())
    except BuildError as error:
        yield "library", False, str(error)
    names = sorted(entry.name for entry in entry_points(group=GROUP))
    remedy = "models are refused, blobs run: pip install ./compiler_layer"
    yield "graph compiler", bool(names), ", ".join(names) or remedy
    for package in ("openvino", "openvino_genai"):
        try:
            yield package, True, version(package)
        except PackageNotFoundError:
            remedy = f"for programs in this environment that use it: pip install {package}"
            yield package, False, remedy
