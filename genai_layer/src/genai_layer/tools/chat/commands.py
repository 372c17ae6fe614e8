"""Commands of a chat, which begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from genai_layer.tools.chat.conversation import Conversation, read_transcript, write_transcript

QUIT = "/quit"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command.

    Attributes:
        argument: name of its argument in the help; empty if it has none.
        help: description of the effect.
        run: executes the command with its argument, and returns the text to show.
    """

    argument: str
    help: str
    run: Callable[[Conversation, str], str]


def obey(conversation: Conversation, line: str) -> str:
    """Execute a command other than /quit; return the text to show.

    Raises:
        GenAIError: the command failed; the conversation is unchanged.
    """
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        return f"unknown command {name}; /help lists the commands\n"
    argument = argument.strip()
    if argument and not command.argument:
        return f"{name} takes no argument; leave out {argument!r}\n"
    if not argument and command.argument == "FILE":
        return f"{name} needs an argument: {name} {command.argument}\n"
    return command.run(conversation, argument)


def _help(_: Conversation, __: str) -> str:
    rows = {f"{name} {each.argument}": each.help for name, each in COMMANDS.items()}
    rows |= {
        f"{QUIT}": "leave; also Ctrl+D",
        "Ctrl+C": "stop the answer, whose text stays in the conversation; or clear the question",
        "Alt+Enter": "begin a new line; so does a \\ at the end of a line",
    }
    return "".join(f"{name:15} {text}\n" for name, text in rows.items())


def _reset(conversation: Conversation, _: str) -> str:
    conversation.reset()
    return ""


def _save(conversation: Conversation, name: str) -> str:
    messages = conversation.messages
    write_transcript(_path(name), messages)
    return f"{name}: {len(messages)} messages saved\n"


def _load(conversation: Conversation, name: str) -> str:
    messages = read_transcript(_path(name))
    conversation.continue_from(messages)
    return f"{name}: {len(messages)} messages loaded\n"


def _statistics(conversation: Conversation, _: str) -> str:
    return conversation.statistics()


def _system(conversation: Conversation, text: str) -> str:
    if text:
        conversation.system = text
        return ""
    return f"{conversation.system or 'no system message; set one by /system TEXT'}\n"


def _path(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # no home directory
        return Path(name)


COMMANDS = {
    "/help": SlashCommand("", "show this text", _help),
    "/reset": SlashCommand("", "forget questions and answers", _reset),
    "/save": SlashCommand("FILE", "write the conversation to a file", _save),
    "/load": SlashCommand("FILE", "continue a saved conversation", _load),
    "/stats": SlashCommand("", "show statistics of the last answer", _statistics),
    "/system": SlashCommand("[TEXT]", "set the system message, or show it", _system),
}
