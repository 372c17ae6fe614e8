"""npu-chat: chat with a language model in the terminal.

MODEL is a folder with an OpenVINO IR or a Hugging Face model.

Examples:
    npu-chat models/demo                                    chat; /help lists commands and keys
    npu-chat models/demo --prompt "What is an NPU?"         one answer
    npu-chat models/demo --prompt "…" --stats               one answer, and its statistics
    npu-chat models/demo -c MAX_PROMPT_LEN=256 -c CACHE_DIR=cache
                                                            properties of pipeline and runtime
    npu-chat models/demo --adapter mine.safetensors --adapter other.safetensors=0.5
                                                            LoRA adapters with alphas
    npu-chat models/demo --device CPU                       the real OpenVINO, if installed
    echo "What is a blob?" | npu-chat models/demo           questions from a pipe, one per line
    eval "$(npu-chat --completion bash)"                    completion with the tab key; also zsh
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from genai_layer import GenAIError, GenerationConfig
from genai_layer.tools.chat.conversation import Conversation
from genai_layer.tools.chat.dialogue import Dialogue
from genai_layer.tools.chat.views import view_maker
from genai_layer.tools.pipeline_options import files, folders, load_pipeline, property_option
from genai_layer.tools.terminal import Command, run, set_up_log, utf8


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 2 after an error; 130 if a single answer was interrupted.
    """
    return run(_chat, argv, GenAIError)


def _adapter(text: str) -> tuple[str, float]:
    """Read FILE or FILE=ALPHA."""
    path, _, alpha = text.partition("=")
    try:
        return path, float(alpha or 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not FILE or FILE=ALPHA") from None


@click.command("npu-chat", cls=Command, help=__doc__)
@click.argument("model", shell_complete=folders)
@click.option("--device", default="NPU", help="device (default NPU)")
@click.option("--prompt", type=utf8, metavar="TEXT", help="answer one prompt and exit")
@click.option("--system", type=utf8, metavar="TEXT", default="", help="system message")
@click.option("--stats", is_flag=True, help="show statistics after each answer")
@click.option("--plain", is_flag=True, help="do not render Markdown")
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
    shell_complete=files,
    help="LoRA adapter (safetensors file); repeatable",
)
@property_option()
def _chat(
    model: str,
    device: str,
    prompt: str | None,
    system: str,
    stats: bool,
    plain: bool,
    adapters: Sequence[tuple[str, float]],
    config: Sequence[tuple[str, Any]],
    **generation: float | None,
) -> None:
    set_up_log()
    pipe = load_pipeline(model, device, config, adapters)
    parameters = _generation_config(generation, pipe.get_generation_config())
    dialogue = Dialogue(Conversation(pipe, parameters, system), view_maker(plain), stats)
    if prompt is None:
        dialogue.run()
    else:
        dialogue.answer(prompt)


def _generation_config(
    given: Mapping[str, float | None], default: GenerationConfig
) -> GenerationConfig:
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if {"temperature", "top_k", "top_p", "rng_seed"} & values.keys():
        values["do_sample"] = True
    config = default.updated(values)
    config.validate()
    return config
