"""The description of the interface, its language, and the C source that is made of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from driver_layer import ze
from driver_layer.c_abi import build
from driver_layer.c_abi.calls import all_calls
from driver_layer.c_abi.description import language
from driver_layer.c_abi.description.language import description
from driver_layer.c_abi.emit_c import c_string, source
from driver_layer.c_abi.structures import python_name
from driver_layer.errors import BuildError


def test_every_name_of_the_python_interface_is_described() -> None:
    described = {function.name for _, function in description().functions()}
    public = {name for name in dir(ze) if name.startswith("ze") and name[2:3].isupper()}
    assert public <= described
    methods = {
        name
        for table in description().tables
        if not table.api
        for name in dir(python_name(table.name))
        if name.startswith("pfn")
    }
    assert methods <= described


def test_every_type_that_is_named_is_a_structure_a_handle_or_a_number() -> None:
    structs = description().structs
    for struct in structs.values():
        assert set(struct.successors) <= set(structs), struct.name
        names = {field.name for field in struct.fields}
        for field in struct.fields:
            assert field.type != "bytes" or field.length in names
    for _, function in description().functions():
        names = {parameter.name for parameter in function.parameters or ()}
        for parameter in function.parameters or ():
            assert not parameter.length or parameter.length in names, function.name


def test_all_functions_can_be_bound() -> None:
    assert len(all_calls()) == len(list(description().functions())) > 130


@pytest.mark.parametrize("line", ["u32", "in u32* x", "out ? u32 x", ""])
def test_a_line_outside_of_the_language_is_rejected(line: str) -> None:
    with pytest.raises(ValueError, match="not a parameter or field"):
        language._variable(line)


def test_paths_may_have_any_characters(built, tmp_path: Path) -> None:
    path = tmp_path / 'a "quoted" \\ path %s ??= é'
    text = source(str(path), "x")
    (tmp_path / "x.c").write_text(text)
    line = [*(build.compiler() or ()), "-c", "-fPIC", "-o", tmp_path / "x.o", tmp_path / "x.c"]
    subprocess.run(line, check=True, timeout=60)
    assert c_string("é") == r'"\303\251"'


class TestBuild:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        return tmp_path / "npu-driver" / "c_abi"

    def test_a_library_is_built_once(self, built, cache, monkeypatch) -> None:
        first = build.library()
        assert [one.name for one in cache.iterdir()] == [first.name], "no rest of the build"

        def not_again(*_: object) -> None:
            raise AssertionError("built again")

        monkeypatch.setattr(build, "compile_library", not_again)
        assert build.library() == first

    def test_without_a_compiler_the_remedy_is_named(self, monkeypatch) -> None:
        monkeypatch.setenv("CC", "/no/such/compiler")
        monkeypatch.setattr(build, "find_spec", lambda name: name == "cffi" or None)
        with pytest.raises(BuildError, match="pip install ziglang"):
            build.library()

    def test_the_package_ziglang_is_a_compiler(self, monkeypatch) -> None:
        monkeypatch.setenv("CC", "/no/such/compiler")
        monkeypatch.setattr(build, "find_spec", lambda _: True)
        assert build.compiler() == (sys.executable, "-m", "ziglang", "cc")

    def test_a_compiler_that_fails_is_reported(self, cache, monkeypatch) -> None:
        monkeypatch.setenv("CC", "false")
        with pytest.raises(BuildError, match="failed"):
            build.library()
        assert list(cache.iterdir()) == []

    def test_a_folder_that_others_may_write_is_not_used(self, cache) -> None:
        cache.mkdir(parents=True)
        cache.chmod(0o777)
        with pytest.raises(BuildError, match="of this user alone"):
            build.library()
