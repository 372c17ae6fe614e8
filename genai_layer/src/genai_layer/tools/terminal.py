"""Terminal commands: click, closed or full streams, completion, and the log.

The other layers have an equivalent module, ``driver_layer.support.command``, which this layer does
not import.
"""

from __future__ import annotations

import codecs
import contextlib
import inspect
import io
import logging
import os
import sys
from collections.abc import Generator, Sequence
from typing import Any, NoReturn, TextIO, cast

import click
from click.exceptions import Exit, NoArgsIsHelpError

from genai_layer.tools.completion import complete, completion_option

VARIABLE = "NPU_LOG"
"""Sets the log on stderr: a level, or layers with levels (compiler:debug,npuw:info)."""


class Command(click.Command):
    """Command whose help and epilog (examples) are printed unchanged.

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
        """Return the help option; it prints to sys.stdout, as click would always write UTF-8."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _print_help
        return option


def run(
    command: click.Command,
    argv: Sequence[str] | None = None,
    expected: type[Exception] | tuple[type[Exception], ...] = (),
) -> int:
    """Run a command; return its exit code.

    The code is 2 if the output could not be written, 130 after an interrupt, and 0 if the reader of
    the output, such as head, closed the pipe.

    Args:
        command: the command; errors are printed under its name.
        argv: arguments; by default those of the process.
        expected: input errors, printed in one line, with exit code 2.

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
                with command.make_context(name, arguments) as context:
                    return command.invoke(context) or 0
            except click.UsageError as error:
                _show_usage(error)
            except Exit as error:
                raise SystemExit(error.exit_code) from None
            except click.ClickException as error:
                return complain(name, error.message)
            except expected as error:
                return complain(name, " ".join(str(error).split()))
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


def utf8(argument: str) -> str:
    """Return an argument of the command line decoded as UTF-8, independent of the locale.

    In a C locale Python keeps each byte above 127 as a lone surrogate. An argument that is not
    UTF-8 is returned unchanged.
    """
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


_CONTROL = dict.fromkeys({*range(32), *range(127, 160)} - {9, 10}, "\ufffd")
"""Replacements of control characters, by which a text could change the terminal."""


def shown(text: str) -> str:
    """Return a model's text as stdout may show it: a terminal gets no control characters."""
    return text.translate(_CONTROL) if sys.stdout.isatty() else text


def set_up_log(chosen: str | None = None) -> None:
    """Set up the log of NPU_LOG, or of ``chosen``; invalid entries are reported and skipped."""
    words = (os.environ.get(VARIABLE, "") if chosen is None else chosen).split(",")
    levels = logging.getLevelNamesMapping()
    for word in filter(None, (word.strip() for word in words)):
        layer, _, level = word.rpartition(":")
        if level.upper() not in levels:
            complain(VARIABLE, f"{word!r} is neither a level like info nor layer:level")
            continue
        logging.basicConfig(format="%(name)s: %(message)s")
        name = layer if not layer or layer.endswith("_layer") else f"{layer}_layer"
        logging.getLogger(name or None).setLevel(levels[level.upper()])


def complain(name: str, message: str) -> int:
    """Write a line to stderr under a command's name, if possible; return exit code 2."""
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
    """Drop output that could not be written; Python would write it again at exit."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def _usable_streams() -> Generator[None]:
    """Replace closed streams; escape output characters that the encoding lacks."""
    kept = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:
        # A closed stream is None; the next opened file would get its descriptor.
        sys.stdin, output, sys.stderr = (
            cast(TextIO, opened.enter_context(open(os.devnull, mode))) if stream is None else stream
            for stream, mode in zip(kept, "rww", strict=True)
        )
        sys.stdout = output
        given = sys.stdin
        if isinstance(given, io.TextIOWrapper):
            # In a C locale the encoding is ASCII, while terminals send UTF-8.
            ascii_only = codecs.lookup(given.encoding).name == "ascii"
            given.reconfigure(encoding="utf-8" if ascii_only else None, errors="replace")
        if isinstance(output, io.TextIOWrapper):
            # In UTF-8, surrogates stand for bytes of a file name and are written as those bytes.
            utf8 = output.encoding.lower().startswith("utf")
            if output.errors == "strict" or (output.errors == "surrogateescape" and not utf8):
                output.reconfigure(errors="backslashreplace")
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = kept
