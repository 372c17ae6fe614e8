"""Local Hugging Face hub of tiny random models, under the names that the public tests request.

With ``HF_HOME`` set to the folder and ``HF_HUB_OFFLINE=1``, the tests find the models without a
network. Names that are missing here are not found, so their tests fail with the real package as
well and are not counted.

Needs torch, transformers 5, soundfile and Pillow:

    python tests/oracle/public/make_hub.py FOLDER       # a minute
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import hub_media as media
from hub_models import MODELS, scaled, tokenizer

COMMIT = "0" * 40
"""Revision of every model."""


def entry(hub: Path, name: str, kind: str = "models") -> Path:
    """Make the folder of a model or data set in a hub, as huggingface_hub lays it out."""
    print(name, flush=True)
    place = hub / f"{kind}--{name.replace('/', '--')}"
    shutil.rmtree(place, ignore_errors=True)
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(COMMIT)
    snapshot = place / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    return snapshot


def main() -> None:
    """Write all models, data sets and pictures."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="HF_HOME of the tests")
    folder = parser.parse_args().folder
    hub = folder / "hub"
    for seed, (name, (family, make)) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        snapshot, tokens = entry(hub, name), tokenizer(family)
        tokens.save_pretrained(snapshot)
        made = make(tokens)
        if made is not None:
            scaled(made).save_pretrained(snapshot)
    for name, multilingual in media.WHISPERS.items():
        media.write_whisper(entry(hub, name), multilingual)
    for name, architecture in media.VISION.items():
        media.write_vision(entry(hub, name), architecture)
    for name, described in media.SPEECHES.items():
        media.write_speeches(entry(hub, name, "datasets"), *described)
    media.write_pictures(folder / "pytest" / "d" / "images")


if __name__ == "__main__":
    main()
