"""Mutable command lists: one recording that runs with different arguments.

A list created with ``ze_mutable_command_list_exp_desc_t`` numbers its commands; the graph arguments
of a recorded execution can be replaced without a new recording. The list must then be closed again
before execution; closing applies the blob's user relocations for the new addresses, and prepares
the program for them (the public driver does both at the next submission).

Source: ZE_experimental_mutable_command_list 1.1;
docs/reference/level_zero.md#mutable-command-lists, docs/reference/npuw.md#level-zero-calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag

from driver_layer.ze import errors
from driver_layer.ze.calls import check_fields, checked
from driver_layer.ze.command_list import ListState, ze_command_list_handle_t
from driver_layer.ze.context import Pointer
from driver_layer.ze.graph import GraphExecution
from driver_layer.ze.graph_types import ze_graph_argument_value_strides_t


class ze_mutable_command_exp_flags_t(IntFlag):
    """Changeable properties of a command."""

    ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENT_DEPRECATED = 1 << 6
    ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENTS = 1 << 7


_ARGUMENTS = (
    ze_mutable_command_exp_flags_t.ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENTS,
    ze_mutable_command_exp_flags_t.ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENT_DEPRECATED,
)


@dataclass(frozen=True, slots=True)
class ze_mutable_command_id_exp_desc_t:
    """Request for the number of the next command; the flags name the property to change."""

    flags: int = ze_mutable_command_exp_flags_t.ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENTS


@dataclass(frozen=True, slots=True)
class ze_mutable_graph_argument_exp_desc_t:
    """A new location of a command's argument.

    ``pNext`` is the next change, or the argument's strides; then ``pArgValue`` may be None, and the
    location stays. Without strides the tensor is dense, whatever it was before.
    """

    commandId: int
    argIndex: int
    pArgValue: Pointer | None
    pNext: ze_mutable_graph_argument_exp_desc_t | ze_graph_argument_value_strides_t | None = None


@dataclass(frozen=True, slots=True)
class ze_mutable_commands_exp_desc_t:
    """A chain of changes."""

    pNext: ze_mutable_graph_argument_exp_desc_t | None
    flags: int = 0


@checked
def zeCommandListGetNextCommandIdExp(
    hCommandList: ze_command_list_handle_t, desc: ze_mutable_command_id_exp_desc_t
) -> int:
    """Return the number that the next command of a mutable list will have.

    Raises:
        ZeError: INVALID_ARGUMENT: the list is not mutable, or closed, or the flags name another
            property than graph arguments.
    """
    command_list = hCommandList
    _check_mutable(command_list)
    command_list.check_open()
    if desc.flags not in _ARGUMENTS:
        raise errors.invalid_argument(f"flags {desc.flags:#x}: only graph arguments can be changed")
    return len(command_list.commands)


@checked
def zeCommandListUpdateMutableCommandsExp(
    hCommandList: ze_command_list_handle_t, desc: ze_mutable_commands_exp_desc_t
) -> None:
    """Replace arguments of recorded graph executions: all of the chain, or none.

    The list must be closed again before execution.

    Raises:
        ZeError: INVALID_ARGUMENT: the list is not mutable, the chain is empty, a command or an
            argument does not exist, the memory is too small, or strides are not possible;
            INVALID_NULL_POINTER; HANDLE_OBJECT_IN_USE: the list is executing.
    """
    command_list = hCommandList
    _check_mutable(command_list)
    if desc.flags or desc.pNext is None:
        raise errors.invalid_argument("flags must be 0 and pNext a chain of changes")
    command_list.check_idle()
    changes = _changes(command_list, desc.pNext)
    if command_list.state is ListState.CLOSED:  # first: a partly changed list must not execute
        command_list.state = ListState.CHANGED
    for change in changes:
        change()


def _changes(
    command_list: ze_command_list_handle_t, first: ze_mutable_graph_argument_exp_desc_t
) -> list[Callable[[], None]]:
    """Check a chain of changes; return the functions that make them."""
    changes: list[Callable[[], None]] = []
    link: object = first
    while link is not None:
        if isinstance(link, ze_graph_argument_value_strides_t):
            raise errors.invalid_argument("strides must follow the argument that they belong to")
        if not isinstance(link, ze_mutable_graph_argument_exp_desc_t):
            raise errors.invalid_argument(f"{type(link).__name__} cannot follow strides")
        check_fields(link, "pNext")
        target, pointer = _target(command_list, link.commandId), link.pArgValue or None
        if isinstance(link.pNext, ze_graph_argument_value_strides_t):
            strides = link.pNext
            check_fields(strides, "pNext")
            changes.append(target.change(link.argIndex, pointer, strides.userStrides))
            link = strides.pNext
        else:
            errors.not_null(pointer, "pArgValue")
            changes.append(target.change(link.argIndex, pointer, None))
            link = link.pNext
    return changes


def _target(command_list: ze_command_list_handle_t, number: int) -> GraphExecution:
    """Return the command with a number."""
    commands = command_list.commands
    target = commands[number].execution if 0 <= number < len(commands) else None
    if target is None:
        raise errors.invalid_argument(f"command {number} has no graph arguments")
    return target


def _check_mutable(command_list: ze_command_list_handle_t) -> None:
    if not command_list.is_mutable:
        message = "the list is not mutable; create it with ze_mutable_command_list_exp_desc_t"
        raise errors.invalid_argument(message)
