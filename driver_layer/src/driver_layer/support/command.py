"""Command-line commands built with click; they tolerate closed, full and broken streams.

Begin with ``run``. Declare a command by ``click.command(cls=Command)``; its function returns the
exit code, or None for 0.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import click
from click.exceptions import Exit, NoArgsIsHelpError
from click.shell_completion import CompletionItem

from driver_layer.support.completion import complete, completion_option
from driver_layer.support.progress import progress_bars


class _PathType(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] (click 8.2 has none)
    """Type of paths that the command itself checks; shells complete them."""

    name = "path"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path, which need not exist."""
        return Path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Complete a file or a folder."""
        return [CompletionItem(incomplete, type="file")]


PATH = _PathType()
"""Type of arguments that are paths."""


class Command(click.Command):
    """A command whose help and epilog (examples) are printed verbatim, not reflowed.

    Without arguments, a command that needs some prints its help.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.no_args_is_help |= any(param.required for param in self.params)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help."""
        formatter.write(f"\n{inspect.cleandoc(self.help or '')}\n")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        formatter.write(f"\n{self.epilog}" if self.epilog else "")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; a program as a whole has --completion."""
        whole = [] if ctx.parent is not None else [completion_option()]
        *own, help_option = super().get_params(ctx)
        return [*own, *whole, help_option]

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the help option."""
        return ["-h", "--help"]

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Replace click's callback, which writes UTF-8 to streams of other encodings."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _print_help
        return option


class Group(Command, click.Group):
    """A command with sub-commands, listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the sub-commands."""
        return list(self.commands)


def run(
    command: click.Command,
    argv: Sequence[str] | None = None,
    expected: type[Exception] | tuple[type[Exception], ...] = (),
) -> int:
    """Run a command; return its exit code.

    The code is 2 if the output could not be written, 130 after an interrupt, and 0 if the reader of
    the output, such as head, closed the pipe.

    Args:
        command: the command; it has a name.
        argv: arguments; those of the process if not given.
        expected: errors of input; they are reported in one line, with exit code 2.

    Raises:
        SystemExit: the command line is invalid, or requests help.
    """
    name = command.name or ""
    with _usable_streams():
        try:
            try:
                if complete(command):
                    return 0
                arguments = list(sys.argv[1:] if argv is None else argv)
                with progress_bars(), command.make_context(name, arguments) as context:
                    return command.invoke(context) or 0
            except click.UsageError as error:
                _show_usage(error)
            except Exit as error:
                raise SystemExit(error.exit_code) from None
            except click.ClickException as error:
                return complain(name, error.message)
            except expected as error:
                return complain(name, str(error))
            finally:
                sys.stdout.flush()
        except OSError as error:
            _discard_output()
            if isinstance(error, BrokenPipeError):
                return 0
            where = error.filename or "standard output"
            return complain(name, f"{where}: {error.strerror or error}")
        except KeyboardInterrupt:
            complain(name, "interrupted")
            return 130


def complain(name: str, message: str) -> int:
    """Write a line to stderr under a command's name, ignoring errors; return exit code 2."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{name}: {message}\n")
    return 2


def _print_help(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        sys.stdout.write(context.get_help() + "\n")
        context.exit()


def _show_usage(error: click.UsageError) -> NoReturn:
    if isinstance(error, NoArgsIsHelpError):
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{error.format_message()}\n")
    elif error.ctx is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"usage: {error.ctx.get_usage().removeprefix('Usage: ')}\n")
        complain(error.ctx.command_path, f"error: {error.format_message()}")
    raise SystemExit(2)


def _discard_output() -> None:
    """Redirect stdout to the null device: Python flushes it again when the process ends."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def _usable_streams() -> Generator[None]:
    """Replace closed streams; escape characters that the encoding of the output lacks."""
    kept = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:
        # A closed stream is None; the next opened file would get its descriptor number.
        sys.stdin, output, sys.stderr = (
            cast(TextIO, opened.enter_context(open(os.devnull, mode))) if stream is None else stream
            for stream, mode in zip(kept, "rww", strict=True)
        )
        sys.stdout = output
        if isinstance(output, io.TextIOWrapper):
            # In UTF-8, surrogates represent bytes of file names and are written as those bytes.
            utf8 = output.encoding.lower().startswith("utf")
            if output.errors == "strict" or (output.errors == "surrogateescape" and not utf8):
                output.reconfigure(errors="backslashreplace")
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = kept
