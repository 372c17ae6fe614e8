"""npu-chat: chat with a language model in the terminal.

MODEL is a folder with an OpenVINO IR or a Hugging Face model.

Examples:
    npu-chat models/demo                                    chat; /help lists the commands
    npu-chat models/demo --prompt "What is an NPU?"         one answer
    npu-chat models/demo --prompt "…" --stats               one answer, and its statistics
    npu-chat models/demo -c MAX_PROMPT_LEN=256 -c CACHE_DIR=cache
                                                            properties of pipeline and runtime
    npu-chat models/demo --adapter mine.safetensors --adapter other.safetensors=0.5
                                                            LoRA adapters with alphas
    npu-chat models/demo --device CPU                       the real OpenVINO, if installed
    echo "What is a blob?" | npu-chat models/demo           questions from a pipe, one per line
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

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
from genai_layer.tools.terminal import Command, progress, run, set_up_log, utf8

HELP = """\
/help   show this text
/reset  forget the conversation
/stats  show statistics of the last answer
/quit   leave (also Ctrl+D); Ctrl+C ends an answer
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 2 after an error; 130 if a single answer was interrupted.
    """
    return run(_chat, argv, GenAIError)


def _setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE; the value is an integer, true or false, or a string."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE")
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
        raise click.BadParameter(f"{text!r} is not FILE or FILE=ALPHA") from None


@click.command("npu-chat", cls=Command, help=__doc__)
@click.argument("model")
@click.option("--device", default="NPU", help="device (default NPU)")
@click.option("--prompt", type=utf8, metavar="TEXT", help="answer one prompt and exit")
@click.option("--system", type=utf8, metavar="TEXT", default="", help="system message")
@click.option("--stats", is_flag=True, help="show statistics after the answer")
@click.option("--max-new-tokens", type=int, help="maximum number of tokens in an answer")
@click.option("--temperature", type=float, help="sample; values below 1 sharpen the distribution")
@click.option("--top-k", type=int, help="sample among the k likeliest tokens")
@click.option(
    "--top-p", type=float, help="sample among the likeliest tokens up to this probability"
)
@click.option("--seed", "rng_seed", type=int, help="sample with this seed")
@click.option(
    "--adapter",
    "adapters",
    metavar="FILE[=ALPHA]",
    type=_adapter,
    multiple=True,
    help="LoRA adapter (safetensors file); repeatable",
)
@click.option(
    "-c",
    "--config",
    metavar="KEY=VALUE",
    type=_setting,
    multiple=True,
    help="property, e.g. MAX_PROMPT_LEN=256 or INFERENCE_PRECISION_HINT=f32; repeatable",
)
def _chat(
    model: str,
    device: str,
    prompt: str | None,
    system: str,
    stats: bool,
    adapters: Sequence[tuple[str, float]],
    config: Sequence[tuple[str, Any]],
    **generation: float | None,
) -> None:
    set_up_log()
    properties = _properties(config)
    if adapters:
        properties["adapters"] = AdapterConfig([(Adapter(path), alpha) for path, alpha in adapters])
    with progress("loading the model"):
        pipe = LLMPipeline(model, device, **properties)
        chat = Chat(pipe, _generation_config(generation, pipe.get_generation_config()), system)
    if prompt is None:
        chat.converse()
        return
    chat.answer(prompt)
    if stats:
        sys.stdout.write("\n" + chat.stats())


class Chat:
    """Conversation in the terminal.

    Args:
        pipe: the pipeline.
        config: generation parameters.
        system: system message; may be empty.
    """

    def __init__(self, pipe: LLMPipeline, config: GenerationConfig, system: str) -> None:
        self._pipe, self._config, self._system = pipe, config, system
        self._results: DecodedResults | None = None
        self._template = bool(pipe.get_tokenizer().chat_template)
        self._history = self._new_history()

    def converse(self) -> None:
        """Answer questions until the input ends."""
        interactive = sys.stdin.isatty()
        if interactive:
            _enable_line_editing()
            sys.stdout.write("Ask a question; /help lists the commands.\n")
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
        """Answer a question; the text is streamed to the terminal.

        Raises:
            GenAIError: the generation failed; the conversation is unchanged.
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
            return "no answer yet\n"
        return _table(self._results, self._pipe.execution_report())

    def _obey(self, line: str, interactive: bool) -> None:
        if line == "/help":
            sys.stdout.write(HELP)
        elif line == "/reset":
            self._history = self._new_history()
        elif line == "/stats":
            sys.stdout.write(self.stats())
        elif line.startswith("/"):
            sys.stdout.write(f"unknown command {line}; /help lists the commands\n")
        else:
            self._answer_line(line, interactive)

    def _answer_line(self, line: str, interactive: bool) -> None:
        """Answer a question; in a terminal, Ctrl+C or an error does not end the conversation."""
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
    """Collect the properties of -c.

    Raises:
        PropertyError: a property is given twice.
    """
    properties: dict[str, Any] = {}
    for name, value in settings:
        if name in properties:
            raise PropertyError(f"-c {name}: given twice; leave one out")
        properties[name] = value
    return properties


def _generation_config(
    given: Mapping[str, float | None], default: GenerationConfig
) -> GenerationConfig:
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if {"temperature", "top_k", "top_p", "rng_seed"} & values.keys():
        values["do_sample"] = True
    config = default.updated(values)
    config.validate()
    return config


def _enable_line_editing() -> None:
    """Enable the cursor keys, if Python has readline."""
    try:
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport] (it changes input())
    except ImportError:
        return


def _table(results: DecodedResults, report: Mapping[str, str]) -> str:
    """Return statistics of a generation of one text as a table; the runtime's facts come first."""
    metrics = results.perf_metrics
    rows = {
        **report,
        "prompt": f"{metrics.get_num_input_tokens()} tokens",
        "generated": f"{metrics.get_num_generated_tokens()} tokens",
        "TTFT": f"{metrics.get_ttft().mean:.0f} ms",
        "speed": f"{metrics.get_throughput().mean:.1f} tokens/s",
        "finished by": results.finish_reasons[0].name,
    }
    width = max(map(len, rows))
    return "".join(f"{name:{width}}  {value}\n" for name, value in rows.items())


if __name__ == "__main__":
    sys.exit(main())
