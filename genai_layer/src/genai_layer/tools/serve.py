r"""npu-serve: serve language models to OpenAI's and Anthropic's clients.

MODEL is a folder with an OpenVINO IR or a Hugging Face model; its name is that of the folder.

Examples:
    npu-serve models/demo                                   http://127.0.0.1:8000/v1
    npu-serve models/demo --port 9000 --slots 8             eight requests side by side
    npu-serve models/demo -c MAX_PROMPT_LEN=512 -c CACHE_DIR=cache
                                                            properties of pipeline and runtime
    npu-serve models/demo --model big=models/llama-8b --max-bytes 12G
                                                            a second model, loaded when requested
    npu-serve models/demo --embedding-model bge=models/bge --rerank-model rank=models/reranker
                                                            /v1/embeddings and /v1/rerank
    npu-serve models/demo --speech-model whisper=models/whisper-tiny
                                                            /v1/audio/transcriptions
    NPU_SERVE_API_KEY=secret npu-serve models/demo --host 0.0.0.0 --allow-host llm.example.com
                                                            other machines, with a key

A question, from another terminal:
    curl http://127.0.0.1:8000/v1/chat/completions -H "Content-Type: application/json" \
      -d '{"model": "demo", "messages": [{"role": "user", "content": "What is an NPU?"}]}'

SIGTERM and Ctrl+C end the server after the requests in progress, a second one at once.
docs/serving.md has limits, metrics and a reverse proxy for TLS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from genai_layer import GenAIError, PropertyError
from genai_layer.serve.engine.contract import Kind
from genai_layer.serve.hosts import parse_host, parse_origin
from genai_layer.serve.limits import Limits
from genai_layer.serve.models.spec import ModelSpec, Settings
from genai_layer.tools.pipeline_options import folders, loading, properties_of, property_option
from genai_layer.tools.terminal import Command, run, set_up_log

_UNITS = {"K": 10, "M": 20, "G": 30}
"""Powers of two by the last letter of a size."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0 after a shutdown; 2 after an error.
    """
    return run(_serve, argv, (GenAIError, OSError))


def _named(text: str) -> tuple[str, str]:
    """Read NAME=PATH."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise click.BadParameter(f"{text!r} is not NAME=PATH")
    return name, path


def _models_option(
    flag: str, name: str, text: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an option that names models by NAME=PATH."""
    return click.option(flag, name, metavar="NAME=PATH", type=_named, multiple=True, help=text)


def _size(text: str) -> int:
    """Read a number of bytes, with K, M or G behind it or not."""
    number, power = text, 0
    if text[-1:].upper() in _UNITS:
        number, power = text[:-1], _UNITS[text[-1].upper()]
    if not number.isdecimal():
        raise click.BadParameter(f"{text!r} is not a size such as 500M or 12G")
    return int(number) << power


def _host(text: str) -> str:
    """Read a name or an address, without a port."""
    try:
        parse_host(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no name or address of a host") from None
    return text


def _origin(text: str) -> str:
    """Read an origin of pages."""
    try:
        return parse_origin(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} matches no page: {error}") from None


@click.command("npu-serve", cls=Command, help=__doc__)
@click.argument("model", shell_complete=folders)
@_models_option("--model", "models", "further language model; repeatable")
@_models_option("--embedding-model", "embedding", "text embedding model; repeatable")
@_models_option("--rerank-model", "rerank", "reranker; repeatable")
@_models_option("--speech-model", "speech", "speech recogniser (Whisper); repeatable")
@click.option("--device", default="NPU", help="device of all models (default NPU)")
@property_option()
@click.option(
    "--slots",
    type=click.IntRange(1, 8),
    default=4,
    help="sequences that a model generates side by side, 1 to 8 (default 4)",
)
@click.option(
    "--max-bytes",
    metavar="SIZE",
    type=_size,
    help="bound of the weights of loaded models, e.g. 12G; idle models are unloaded",
)
@click.option(
    "--host",
    metavar="NAME",
    type=_host,
    default="127.0.0.1",
    help="address to listen on (default 127.0.0.1)",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    metavar="NAME",
    type=_host,
    multiple=True,
    help="further name by which clients call the server, e.g. a proxy's; repeatable",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="port (default 8000; 0 for a free one)",
)
@click.option(
    "--api-key",
    metavar="KEY",
    envvar="NPU_SERVE_API_KEY",
    help="key that requests must have; better set as NPU_SERVE_API_KEY, which ps does not show",
)
@click.option(
    "--cors-origin",
    "cors_origins",
    metavar="ORIGIN",
    type=_origin,
    multiple=True,
    help="origin whose pages may send requests, e.g. https://example.com; repeatable",
)
@click.option(
    "--queue",
    type=click.IntRange(1),
    default=64,
    help="requests of a model that may wait (default 64); others get 429",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    help="seconds that a request may take (default 600)",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=4096,
    help="tokens that an answer may have (default 4096)",
)
@click.option(
    "--max-body",
    metavar="SIZE",
    type=_size,
    default="4M",
    help="bytes that a request's body may have (default 4M)",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1),
    default=512,
    help="connections that may be open (default 512; at most half of the file handles, all but 48)",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30.0,
    help="seconds that requests in progress have at the shutdown (default 30)",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="ignore keywords of JSON schemas that a grammar cannot follow, e.g. not; else they are "
    "errors",
)
def _serve(
    queue: int,
    timeout: float,
    max_tokens: int,
    max_body: int,
    max_connections: int,
    lenient: bool,
    **values: Any,
) -> None:
    set_up_log()
    limits = Limits(
        queue, timeout, max_tokens, max_body, connections=max_connections, lenient=lenient
    )
    names = ("max_bytes", "host", "port", "cors_origins", "allowed_hosts", "grace")
    others = {name: values[name] for name in names}
    key = values["api_key"] or None
    settings = Settings(_specs(**values), limits, api_key=key, **others)
    try:
        from genai_layer.serve.run import serve
    except ModuleNotFoundError as error:
        raise PropertyError(
            f'the package {error.name} is not installed; pip install "./genai_layer[serve]"'
        ) from error
    serve(settings, loading)


def _specs(
    model: str,
    models: Sequence[tuple[str, str]],
    embedding: Sequence[tuple[str, str]],
    rerank: Sequence[tuple[str, str]],
    speech: Sequence[tuple[str, str]],
    config: Sequence[tuple[str, Any]],
    **values: Any,
) -> list[ModelSpec]:
    """Return the models of the command line.

    Raises:
        PropertyError: a property or a model's name is given twice, or a folder is missing.
    """
    by_kind: dict[Kind, Sequence[tuple[str, str]]] = {
        "text": [(Path(model).resolve().name, model), *models],
        "embedding": embedding,
        "rerank": rerank,
        "speech": speech,
    }
    properties = properties_of(config)
    specs: dict[str, ModelSpec] = {}
    for kind, all_of_kind in by_kind.items():
        for name, path in all_of_kind:
            if name in specs:
                raise PropertyError(f"model {name}: given twice; choose another name")
            if not Path(path).is_dir():
                raise PropertyError(f"model {name}: {path} is no folder; pass a model's folder")
            device, slots = values["device"], values["slots"]
            specs[name] = ModelSpec(name, kind, Path(path), device, properties, slots)
    return list(specs.values())


if __name__ == "__main__":
    sys.exit(main())
