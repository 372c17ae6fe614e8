"""The four distributions as users install them: wheels, in a separate environment."""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("driver_layer", "compiler_layer", "npuw_layer", "genai_layer")


def run(*argv: object, cwd: Path | None = None) -> str:
    result = subprocess.run(
        list(map(str, argv)), capture_output=True, text=True, timeout=900, check=False, cwd=cwd
    )
    assert result.returncode == 0, f"{argv}\n{result.stdout[-1000:]}\n{result.stderr[-3000:]}"
    return result.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the four wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    run(*pip, "-w", folder, *(ROOT / layer for layer in LAYERS))
    return folder


def wheel_of(wheels: Path, layer: str) -> Path:
    (found,) = wheels.glob(f"{layer}-*.whl")
    return found


def environment(folder: Path) -> Path:
    """Create an environment for the pip of another one; return its Python."""
    run(sys.executable, ROOT / "tools/make_venv.py", folder)
    return folder / "bin" / "python"


def install(python: Path, *wheels: Path) -> None:
    """Install wheels and their dependencies; modules are compiled when they are imported."""
    run(python, "-m", "pip", "install", "-q", "--no-compile", *wheels)


def licenses_of(layer: str) -> str:
    """Return the licences of a wheel; the page of npu-serve brings marked, under MIT."""
    return "Apache-2.0 AND MIT" if layer == "genai_layer" else "Apache-2.0"


@pytest.mark.matrix
@pytest.mark.parametrize("layer", LAYERS)
def test_a_wheel_has_types_and_readme_and_no_other_files(wheels: Path, layer: str) -> None:
    with zipfile.ZipFile(wheel_of(wheels, layer)) as archive:
        names = archive.namelist()
        info = email.message_from_bytes(archive.read(f"{layer}-0.1.0.dist-info/METADATA"))
    assert f"{layer}/py.typed" in names
    assert all(name.startswith((f"{layer}/", f"{layer}-0.1.0.dist-info/")) for name in names)
    assert info["License-Expression"] == licenses_of(layer)
    assert info["License-File"] == "LICENSE"
    assert f"{layer}-0.1.0.dist-info/licenses/LICENSE" in names
    assert info["Keywords"]
    assert "Typing :: Typed" in info.get_all("Classifier", [])
    assert f"# {layer}" in str(info.get_payload())


def test_the_wheel_of_genai_has_the_page_with_its_licences(wheels: Path) -> None:
    with zipfile.ZipFile(wheel_of(wheels, "genai_layer")) as archive:
        names = set(archive.namelist())
    static = ROOT / "genai_layer/src/genai_layer/serve/page/static"
    files = [path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()]
    assert {f"genai_layer/serve/page/static/{name}" for name in files} <= names
    assert sum("/licenses/" in name and "/vendor/LICENSE." in name for name in names) == 2


@pytest.mark.long
def test_the_driver_installs_and_works_alone(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, wheel_of(wheels, "driver_layer"))
    installed = run(python, "-m", "pip", "list", "--format=freeze").lower()
    assert "xdsl" not in installed
    assert "compiler" not in installed
    shown = run(tmp_path / "venv/bin/npu-smi", cwd=tmp_path)
    assert "platform 4000" in shown


@pytest.mark.long
def test_genai_installs_and_works_alone(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, wheel_of(wheels, "genai_layer"))
    installed = run(python, "-m", "pip", "list", "--format=freeze").lower()
    assert "npuw" not in installed
    readme = (ROOT / "genai_layer/README.md").read_text()
    example = readme.split("```python\n")[1].split("```")[0]
    assert "hey" in run(python, "-c", example, cwd=tmp_path)


@pytest.mark.long
def test_the_demo_runs_from_wheels_outside_the_checkout(
    wheels: Path, demo: Path, tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv")
    install(python, *wheels.glob("*.whl"))
    where = run(python, "-c", "import npuw_layer; print(npuw_layer.__file__)", cwd=tmp_path)
    assert where.startswith(str(tmp_path))
    ask = ["--prompt", "What is an NPU?", "--stats", "-c", "MAX_PROMPT_LEN=64"]
    answer = run(tmp_path / "venv/bin/npu-chat", demo, *ask, cwd=tmp_path)
    assert answer.startswith("An NPU, or neural processing unit, is a chip")
    assert "3 compiled in" in answer
