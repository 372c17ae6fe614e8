"""Progress of a compilation: bytes that are read, and programs that are compiled."""

from __future__ import annotations

from pathlib import Path

from npuw_layer import Core


def test_a_cold_start_reports_reading_and_compiling_and_a_warm_start_no_compiling(
    tiny: Path, tmp_path: Path
) -> None:
    heard: list[tuple[str, int, int, str]] = []
    options = {"CACHE_DIR": str(tmp_path), "NPUW_LLM_MAX_PROMPT_LEN": 8, "NPUW_DEVICES": "CPU"}
    core = Core()
    with core.reporting_progress(lambda *args: heard.append(args)):
        core.compile_model(tiny, "NPU", options)
        size = (tiny / "model.safetensors").stat().st_size
        reading = [done for name, done, *_ in heard if name == "reading model.safetensors"]
        assert reading[0] == 0
        assert reading[-1] == size
        compiling = [report[1:] for report in heard if report[0] == "compiling"]
        count = compiling[0][1]
        assert compiling == [(done, count, "blobs") for done in range(count + 1)]
        heard.clear()
        core.compile_model(tiny, "NPU", options)
        ended = [report for report in heard if report[0] == "compiling"]
        assert ended == [("compiling", count, count, "blobs")], "it ends without having begun"
        heard.clear()
    core.compile_model(tiny, "NPU", options)
    assert not heard
