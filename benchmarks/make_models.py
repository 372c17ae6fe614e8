"""Models of the benchmark, created unless they exist: real sizes, random weights.

    PEERS/bin/python benchmarks/make_models.py DIR                    # everything, about 10 GB
    PEERS/bin/python benchmarks/make_models.py DIR llama-8m --only ir

PEERS is an environment with the packages in benchmarks/peers/requirements.txt; folders alone
(--only folder) need numpy and tqdm. models.py describes the layout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from models import NAMES, export_command, is_there
from peer import KINDS, Peer
from random_model import llama_config, write_model

DEMO = Path(__file__).resolve().parent.parent / "models" / "demo"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
PARTS = ("folder", "ir", "gguf")


def make_folder(models: Path, name: str) -> None:
    """Create a Hugging Face folder; its tokenizer is the demo model's."""
    folder = write_model(models / name, llama_config(name))
    if not (folder / "tokenizer.json").is_file():
        for file in TOKENIZER:
            shutil.copyfile(DEMO / file, folder / file)


def make_ir(models: Path, name: str) -> None:
    """Export the folder in every precision, with the exporter of this interpreter's environment."""
    for precision in KINDS["openvino"].precisions:
        peer = Peer("openvino", precision)
        if not is_there(peer, models, name):
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            command = export_command(peer, models, name)
            subprocess.run(command, check=True, env=os.environ | {"PATH": path})


def make_gguf(models: Path, name: str) -> None:
    """Convert the folder to f16, and quantise the result with llama.cpp."""
    from gguf_file import quantise, write_gguf

    first, *others = (Peer("llama.cpp", p) for p in KINDS["llama.cpp"].precisions)
    whole = first.source(models, name)
    whole.parent.mkdir(exist_ok=True)
    if not whole.is_file():
        write_gguf(models / name, whole)
    for peer in others:
        target = peer.source(models, name)
        if not target.is_file():
            quantise(whole, target, peer.precision)


def main() -> None:
    """Create the requested models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, help="folder for the models")
    parser.add_argument("names", nargs="*", help=f"among {', '.join(NAMES)} (default: all)")
    parser.add_argument("--only", choices=PARTS, help="create one part (default: all)")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"unknown model {sorted(unknown)[0]!r}; known are {', '.join(NAMES)}")
    arguments.models.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or NAMES:
        make_folder(arguments.models, name)
        if arguments.only in (None, "ir"):
            make_ir(arguments.models, name)
        if arguments.only in (None, "gguf"):
            make_gguf(arguments.models, name)


if __name__ == "__main__":
    main()
