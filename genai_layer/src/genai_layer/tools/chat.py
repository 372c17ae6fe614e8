"""npu-chat: talk to a language model in the terminal.

Examples:
    npu-chat models/demo                                    chat; /help shows the commands
    npu-chat models/demo --prompt "What is an NPU?"         one answer
    npu-chat models/demo --prompt "…" --stats               and how fast it was
    npu-chat models/demo -c MAX_PROMPT_LEN=256 -c CACHE_DIR=cache
                                                            options of the pipeline and below
    npu-chat models/demo --adapter mine.safetensors --adapter other.safetensors=0.5
                                                            with LoRA adapters, at alphas
    npu-chat models/demo --device CPU                       the real OpenVINO, if installed
    echo "What is a blob?" | npu-chat models/demo           questions from a pipe, one a line
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from genai_layer import (
    Adapter,
    AdapterConfig,
    ChatHistory,
    GenAIError,
    GenerationConfig,
    LLMPipeline,
    PropertyError,
)
from genai_layer.results import DecodedResults
from genai_layer.tools.log import set_up_log
from genai_layer.tools.progress import Progress
from genai_layer.tools.stats import stats_table
from genai_layer.tools.streams import complain, run_tool, utf8

_NAME = "npu-chat"

HELP = """\
/help   this text
/reset  forget the conversation
/stats  how fast the last answer was
/quit   leave (Ctrl+D does, too); Ctrl+C ends an answer
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 2 if what was asked for cannot be done; 130 if a single answer was interrupted.
    """
    return run_tool(_NAME, lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    set_up_log()
    try:
        chat = Chat(options)
        if options.prompt is not None:
            return _one_answer(chat, options)
        chat.converse()
    except GenAIError as error:
        return _fail(str(error))
    return 0


def _one_answer(chat: Chat, options: argparse.Namespace) -> int:
    chat.answer(options.prompt)
    if options.stats:
        sys.stdout.write("\n" + chat.stats())
    return 0


def _fail(message: str) -> int:
    complain(_NAME, " ".join(message.split()))
    return 2


class Chat:
    """A conversation in the terminal.

    Args:
        options: the command line.

    Raises:
        GenAIError: the model cannot be loaded, or an option is wrong.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._system = options.system
        self._results: DecodedResults | None = None
        properties = _properties(options.config)
        if options.adapter:
            pairs = [(Adapter(path), alpha) for path, alpha in options.adapter]
            properties["adapters"] = AdapterConfig(pairs)
        with Progress("loading the model"):
            self._pipe = LLMPipeline(options.model, options.device, **properties)
            self._config = _generation_config(options, self._pipe.get_generation_config())
        self._template = bool(self._pipe.get_tokenizer().chat_template)
        self._history = self._new_history()

    def converse(self) -> None:
        """Answer questions until there are no more."""
        interactive = sys.stdin.isatty()
        if interactive:
            _enable_line_editing()
            sys.stdout.write("Ask something; /help shows the commands.\n")
        while True:
            try:
                line = input("> " if interactive else "").strip()
            except (EOFError, KeyboardInterrupt):
                sys.stdout.write("\n" if interactive else "")
                return
            if line == "/quit":
                return
            if line:
                self._obey(line, interactive)

    def answer(self, question: str) -> None:
        """Answer a question, the words streaming as they come.

        Raises:
            GenAIError: it cannot be answered; the conversation stays as it was.
        """
        turn = {"role": "user", "content": question}
        asked = ChatHistory([*self._history.get_messages(), turn])
        results = self._pipe.generate(asked if self._template else [question], self._config, _show)
        sys.stdout.write("\n")
        sys.stdout.flush()
        self._results = results
        self._history.append(turn)
        self._history.append({"role": "assistant", "content": results.texts[0]})

    def stats(self) -> str:
        """Describe the last answer as a table."""
        if self._results is None:
            return "nothing was answered yet\n"
        return stats_table(self._results, self._pipe.execution_report())

    def _obey(self, line: str, interactive: bool) -> None:
        if line == "/help":
            sys.stdout.write(HELP)
        elif line == "/reset":
            self._history = self._new_history()
        elif line == "/stats":
            sys.stdout.write(self.stats())
        elif line.startswith("/"):
            sys.stdout.write(f"unknown command {line}; /help shows the commands\n")
        else:
            self._answer_line(line, interactive)

    def _answer_line(self, line: str, interactive: bool) -> None:
        """In a terminal neither Ctrl+C nor a question too long ends the conversation."""
        try:
            self.answer(line)
        except KeyboardInterrupt:
            if not interactive:
                raise
            sys.stdout.write(" …\n")
        except GenAIError as error:
            if not interactive:
                raise
            sys.stdout.write(f"{error}\n")

    def _new_history(self) -> ChatHistory:
        system = [{"role": "system", "content": self._system}] if self._system else []
        return ChatHistory(system)


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _properties(settings: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The properties that are given by -c.

    Raises:
        PropertyError: one is given twice.
    """
    properties: dict[str, Any] = {}
    for name, value in settings:
        if name in properties:
            raise PropertyError(f"-c {name} is given twice; leave one out")
        properties[name] = value
    return properties


def _generation_config(options: argparse.Namespace, default: GenerationConfig) -> GenerationConfig:
    given = {
        "max_new_tokens": options.max_new_tokens,
        "temperature": options.temperature,
        "top_k": options.top_k,
        "top_p": options.top_p,
        "rng_seed": options.seed,
    }
    values = {name: value for name, value in given.items() if value is not None}
    if {"temperature", "top_k", "top_p", "rng_seed"} & values.keys():
        values["do_sample"] = True
    config = default.updated(values)
    config.validate()
    return config


def _enable_line_editing() -> None:
    """Let the cursor keys work, where Python has readline."""
    try:
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport] (it changes input())
    except ImportError:
        return


def _setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE; whole numbers and YES/NO-like words become what they mean."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    words = {"true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    try:
        return key, int(value)
    except ValueError:
        return key, value


def _adapter(text: str) -> tuple[str, float]:
    """Read FILE or FILE=ALPHA."""
    path, _, alpha = text.partition("=")
    try:
        return path, float(alpha or 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not FILE or FILE=ALPHA") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_NAME, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="folder of a model: OpenVINO IR or Hugging Face")
    parser.add_argument("--device", default="NPU", help="device (default %(default)s)")
    parser.add_argument("--prompt", type=utf8, help="answer this and end")
    parser.add_argument("--system", type=utf8, default="", help="instructions that come first")
    parser.add_argument("--stats", action="store_true", help="show a table after the answer")
    parser.add_argument("--max-new-tokens", type=int, help="end an answer after so many tokens")
    parser.add_argument("--temperature", type=float, help="sample; below 1 is more certain")
    parser.add_argument("--top-k", type=int, help="sample among the k likeliest tokens")
    parser.add_argument("--top-p", type=float, help="sample among the likeliest of this sum")
    parser.add_argument("--seed", type=int, help="sample with this seed")
    parser.add_argument(
        "--adapter",
        metavar="FILE[=ALPHA]",
        type=_adapter,
        action="append",
        default=[],
        help="a LoRA adapter, a safetensors file; repeatable",
    )
    parser.add_argument(
        "-c",
        "--config",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a property, e.g. MAX_PROMPT_LEN=256 or INFERENCE_PRECISION_HINT=f32; repeatable",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
