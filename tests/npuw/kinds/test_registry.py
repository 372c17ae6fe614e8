"""The registry finds kinds by their folders, and kinds of other packages by entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import npuw_layer
from npuw_layer.errors import OptionError
from npuw_layer.kinds.registry import kinds, route
from npuw_layer.options import NAMES, parse_options

FOLDERS = Path(npuw_layer.__file__).parent / "kinds"

OTHER = '''
"""A kind of another package."""

from typing import ClassVar

from pydantic import Field

from npuw_layer.api.kind import Kind
from npuw_layer.options.kinds import KindOptions


class OtherOptions(KindOptions):
    """Options of the other kind."""

    title: ClassVar[str] = "Other"
    flags: ClassVar[tuple[str, ...]] = ("other",)

    other: bool = Field(False, alias="OTHER")
    """Whether a model is of the other kind."""
    other_size: int = Field(3, alias="OTHER_SIZE")
    """How large it is."""


class OtherKind(Kind):
    name = "other"
    options = OtherOptions

    def settle(self, path, options):
        return options.model_copy(update={"use_npuw": True, "llm": False})

    def device(self, devices, options):
        return devices.of_static(options)

    def build(self, devices, device, path, options):
        return f"{path.name} {options.group(OtherOptions).other_size}"


KIND = OtherKind()
'''

SCRIPT = """
import sys

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.options import GROUPS, parse_options

assert GROUPS[-1].title == "Other"
print(Core().compile_model(sys.argv[1], "NPU", {"OTHER": "YES", "OTHER_SIZE": 5}))
try:
    parse_options({"OTHER": "YES", "NPUW_KOKORO": "YES"})
except OptionError as error:
    print(error)
"""


def test_each_folder_contains_a_kind() -> None:
    found = {kind.name for kind in kinds()}
    assert found == {path.parent.name for path in FOLDERS.glob("*/__init__.py")}


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "llm"),
        ({"NPUW_LLM": "NO"}, "static"),
        ({"NPUW_GQA": "YES"}, "static"),
        ({"NPUW_KOKORO": "YES"}, "kokoro"),
        ({"NPUW_PA": "YES"}, "paged"),
        ({"NPUW_FLUX2": "YES"}, "flux2"),
        ({"NPUW_WHISPER": "YES"}, "whisper"),
        ({"NPUW_TEXT_RERANK": "YES"}, "embedding"),
    ],
)
def test_an_option_requests_a_kind_or_the_model_is_recognised(
    given: dict[str, object], kind: str, demo_ir: Path
) -> None:
    found, options = route(demo_ir, parse_options(given))
    assert found.name == kind
    assert options.llm == (kind in ("llm", "whisper", "embedding"))


@pytest.mark.parametrize(
    "flags",
    [("NPUW_FLUX2", "NPUW_WHISPER"), ("NPUW_TEXT_EMBED", "NPUW_WHISPER")],
)
def test_options_of_two_kinds_are_rejected(flags: tuple[str, str]) -> None:
    assert {*flags} <= NAMES.keys()
    with pytest.raises(OptionError, match=r"contradicts NPUW_.* = YES; leave one of them out"):
        parse_options(dict.fromkeys(flags, "YES"))


def test_another_package_adds_a_kind_with_options(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(OTHER)
    installed = tmp_path / "other-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[npuw_layer.kinds]\nother = other:KIND\n")
    paths = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(demo)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.splitlines() == [
        f"{demo.name} 5",
        "OTHER: contradicts NPUW_KOKORO = YES; leave one of them out",
    ]
