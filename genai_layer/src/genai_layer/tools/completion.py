"""Completion of commands in bash and zsh: click's, with scripts that also complete ``NAME=value``.

The other layers have an equivalent module, ``driver_layer.support.completion``, which this layer
does not import. Source: https://click.palletsprojects.com/en/stable/shell-completion/.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value"); [[ $value == *= ]] && compopt -o nospace ;;
        esac
    done < <(COMP_WORDS="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local type value help
    local -a names values described
    while IFS= read -r type && IFS= read -r value && IFS= read -r help; do
        case $type in
            dir) compset -P '*='; _path_files -/ ;;
            file) compset -P '*='; _path_files ;;
            *) if [[ $value == *= ]]; then names+=("$value")
               elif [[ $help == _ ]]; then values+=("$value")
               else described+=("$value:$help"); fi ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
             %(complete_var)s=zsh_complete ${words[1]})
    (( $#described )) && _describe -V options described
    (( $#values )) && compadd -V values -a values
    (( $#names )) && compadd -V names -S '' -a names
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class _Bash(BashComplete):
    """Completion in bash, which treats ``=`` as a word of its own."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Split the line up to the cursor; the last word is incomplete."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        self._incomplete = "" if line[-1:].isspace() else words.pop()
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return type and value, without what precedes a ``=`` before the cursor."""
        known = self._incomplete[: self._incomplete.rfind("=") + 1]
        return f"{item.type},{item.value.removeprefix(known)}"


class _Zsh(ZshComplete):
    """Completion in zsh."""

    source_template = _ZSH


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh}


def complete(command: click.Command) -> bool:
    """Answer the shell if it asks for completions; return whether it did.

    The shell asks by a variable, e.g. _NPU_CHAT_COMPLETE=bash_complete; _source prints the script.
    """
    asked = _shell(command, os.environ.get(_variable(command), ""))
    if asked is None:
        return False
    shell, action = asked
    sys.stdout.write((shell.source() if action == "source" else shell.complete()) + "\n")
    return True


def completion_option() -> click.Option:
    """Return the option that prints a shell's completion script, and exits."""
    return click.Option(
        ["--completion"],
        type=click.Choice(list(_SHELLS)),
        is_eager=True,
        expose_value=False,
        callback=_print_script,
        help="print the shell's completion script, and exit",
    )


def _print_script(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is None or context.resilient_parsing:
        return
    found = _shell(context.command, f"{name}_source")
    if found is not None:
        sys.stdout.write(found[0].source())
    context.exit()


def _shell(command: click.Command, instruction: str) -> tuple[ShellComplete, str] | None:
    """Return the shell of an instruction, e.g. bash_complete, and the action; None if unknown."""
    name, _, action = instruction.partition("_")
    if name not in _SHELLS or action not in ("source", "complete"):
        return None
    if action == "complete" and not _has_line(name):
        return None
    program = command.name or ""
    return _SHELLS[name](command, {}, program, _variable(command)), action


def _has_line(shell: str) -> bool:
    """Return whether the variables that a shell's script sets beside the instruction are usable."""
    place = "0" if shell == "bash" else os.environ.get("COMP_CWORD", "")
    return bool(os.environ.get("COMP_WORDS", "").strip()) and place.isdecimal()


def _variable(command: click.Command) -> str:
    return f"_{(command.name or '').replace('-', '_').upper()}_COMPLETE"
