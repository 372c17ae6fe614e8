"""Sweeps: values of options, ratios to neighbours, marks, and sections of documents."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench_sweep import parse_arguments
from session import Place
from sweep.document import END, section, summary, update
from sweep.every import SWEEPS
from sweep.figures import Figure, Table, beside_first, beside_previous
from sweep.lengths import LENGTHS
from sweep.option_values import every_option
from sweep.samplers import BY_DECODING, BY_SAMPLER, GENERATED, sampler_seconds
from sweep.subject import BRIEF, Subject

from genai_layer import GenerationConfig
from npuw_layer.options import describe

OPTIONS = {option.name: option.values for option in every_option()}

NOT_SAMPLING = {
    *("max_new_tokens", "max_length", "eos_token_id", "ignore_eos", "echo", "apply_chat_template"),
    *("stop_strings", "include_stop_str_in_output", "parsers", "adapters"),
    *("assistant_confidence_threshold", "num_assistant_tokens", "max_ngram_size"),
    *("branching_factor", "tree_depth"),
    *("pruning_ratio", "relevance_weight", "return_omni_outputs"),
}
"""Fields that end a text, present it, draft its tokens, or are for models of other kinds."""


def marked(figures: list[Figure]) -> list[str]:
    return [figure.setting for figure in figures if figure.marked]


def lengths(**milliseconds: float) -> list[Figure]:
    figures = [Figure(name[1:], (value,)) for name, value in milliseconds.items()]
    return beside_previous(figures, [int(figure.setting) for figure in figures])


def test_a_flag_has_its_other_value_and_an_enum_every_other() -> None:
    assert OPTIONS["NPUW_LLM_PREFILL_PYRAMID"] == ("NO",)
    assert OPTIONS["ENABLE_WEIGHTLESS"] == ("YES", "NO")  # unset by default
    assert OPTIONS["KV_CACHE_PRECISION"] == ("f32", "f16", "bf16", "i8", "u8", "f8e4m3", "f8e5m2")


def test_a_number_is_halved_or_else_doubled_or_set_to_1_within_its_bounds() -> None:
    assert OPTIONS["NPUW_LLM_MAX_PROMPT_LEN"] == ("512",)
    assert OPTIONS["NPUW_LLM_MAX_GENERATION_TOKEN_LEN"] == ("2",)
    assert OPTIONS["NPU_TILES"] == ("1",)
    assert OPTIONS["NPUW_ACC_THRESH"] == ("0.005",)


def test_values_that_are_not_supported_are_left_out() -> None:
    assert OPTIONS["NPUW_ATTN"] == ()
    assert OPTIONS["NPUW_LLM_PREFILL_MOE_HINT"] == ("HOST_ROUTED",)


def test_every_option_has_other_values_unless_it_is_text_a_list_a_map_or_fixed() -> None:
    described = {each.name: each for each in describe()}
    assert OPTIONS.keys() == described.keys()
    without = {described[name].type for name, values in OPTIONS.items() if not values}
    assert without == {"text", "list", "map", "functions", "enum"}
    fixed = [n for n, values in OPTIONS.items() if not values and described[n].type == "enum"]
    assert fixed == ["NPUW_PA_DEVICE", "NPUW_ATTN"]


def test_one_token_more_at_several_times_the_cost_is_marked() -> None:
    assert marked(lengths(_64=90, _65=240, _256=280, _257=1110, _1000=1115)) == ["65", "257"]


def test_a_time_that_grows_as_the_length_is_not_marked() -> None:
    assert marked(lengths(_64=90, _256=360, _512=720, _1024=1440)) == []


def test_a_ratio_of_1_5_to_the_first_figure_is_marked() -> None:
    figures = beside_first([Figure("a", (2.0,)), Figure("b", (2.9,)), Figure("c", (3.0,))])
    assert marked(figures) == ["c"]


def test_a_refused_setting_is_no_neighbour() -> None:
    figures = beside_previous(
        [Figure("1", (2.0,)), Figure("2", refused="why"), Figure("3", (2.0,))]
    )
    assert [figure.ratios for figure in figures] == [(), (), (1.0,)]


def test_lengths_ascend_from_1_to_1024_with_neighbours_of_each_prefill_model() -> None:
    assert sorted(LENGTHS) == [*LENGTHS]
    assert (LENGTHS[0], LENGTHS[-1]) == (1, 1024)
    assert {64, 65, 256, 257} <= {*LENGTHS}


def test_every_field_of_a_generation_config_is_swept_or_changes_no_choice() -> None:
    swept = {name for fields in (*BY_SAMPLER.values(), *BY_DECODING.values()) for name in fields}
    named = {name for setting in BY_DECODING for name in setting.replace(",", "").split()}
    fields = GenerationConfig.model_fields.keys()
    assert fields - NOT_SAMPLING == fields & (swept | named)


@pytest.mark.parametrize("setting", BY_SAMPLER)
def test_a_sampler_runs_alone(setting: str) -> None:
    assert sampler_seconds({"max_new_tokens": 256, **BY_SAMPLER[setting]}, 2048, 1) > 0


def test_min_new_tokens_acts_on_the_choices_of_a_sampler_alone() -> None:
    assert BY_SAMPLER["min_new_tokens"]["min_new_tokens"] > GENERATED


def test_a_changed_option_differs_from_the_value_that_all_models_of_a_brief_sweep_have() -> None:
    assert all(value not in OPTIONS[name] for name, value in BRIEF.options.items())


TABLE = Table(
    "Rows of a step",
    "Neighbour: the previous.",
    ("a step",),
    [
        Figure("1", (0.010,), peer=0.5),
        Figure("2", (0.029,), (2.9,), peer=1.25),
        Figure("3", refused="too many"),
    ],
)


def test_a_section_has_all_figures_marks_and_refusals() -> None:
    assert section("llama", ["today"], [TABLE]).splitlines() == [
        *("## llama", "", "- today", "", "### Rows of a step", "", "Neighbour: the previous.", ""),
        "| setting | a step, ms | ÷ neighbour | ÷ OpenVINO |",
        "|---------|-----------:|------------:|-----------:|",
        "| 1       |      10.00 |             |       0.50 |",
        "| 2       |      29.00 |    **2.90** |       1.25 |",
        *("", "Refused:", "", "- 3: too many"),
    ]


def test_a_summary_has_a_row_for_each_sweep() -> None:
    assert summary("llama", ["today", "EPYC"], [TABLE]).splitlines() == [
        *("**llama** – today; EPYC:", ""),
        "| sweep          |     settings |             ms |   ÷ OpenVINO |",
        "|----------------|-------------:|---------------:|-------------:|",
        "| Rows of a step | 3, 1 refused | 10.00 to 29.00 | 0.50 to 1.25 |",
        *("", "÷ neighbour ≥ 1.5:", "", "- Rows of a step: 2: 2.9"),
    ]


def test_a_document_keeps_the_sections_of_other_models(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"# Page\n\n{END}\n\nThe end.\n")
    for name, text in (("a", "first"), ("b", "second"), ("a", "third")):
        update(document, name, text)
    kept = [line for line in document.read_text().splitlines() if line and "<!--" not in line]
    assert kept == ["# Page", "third", "second", "The end."]


def test_a_document_whose_section_has_no_end_is_left_as_it_is(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(text := f"<!-- sweep of a -->\n\nold\n\n## Other\n\n{END}\n")
    with pytest.raises(ValueError, match="the section of a has no end; add the line"):
        update(document, "a", "new")
    assert document.read_text() == text


@pytest.mark.parametrize(
    "wrong", [["--threads", "0"], ["--timeout", "0"], ["--timeout", "nan"], ["--timeout", "1e30"]]
)
def test_a_wrong_number_is_rejected_by_name(demo: Path, wrong: list[str], capsys) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([str(demo), *wrong])
    assert f"error: {wrong[0]} " in capsys.readouterr().err


def test_some_sweeps_or_a_single_round_write_no_file(demo: Path) -> None:
    given = (["--once"], ["--only", *SWEEPS])
    assert all(parse_arguments([str(demo), *each]).no_report for each in given)
    assert not parse_arguments([str(demo)]).no_report


@pytest.mark.long
def test_a_task_that_the_stack_refuses_is_a_refused_figure(demo: Path, tmp_path: Path) -> None:
    place = Place(demo, sys.executable, sys.executable, 1, 60.0, 0.0, tmp_path)
    with Subject(demo, place, BRIEF) as subject:
        found = subject.measure(["a", "b"], "first", {"prompt": []})
        assert [figure.setting for figure in found if figure.refused] == ["a", "b"]
        assert subject.measure(["a"], "first", {"prompt": [1, 2]})[0].values


def test_a_document_without_a_place_is_rejected_before_anything_is_measured(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([str(demo), "--summary", str(tmp_path / "page.md")])
    assert f"page.md: no place for a section; add the line {END}" in capsys.readouterr().err


def test_a_folder_without_a_model_is_rejected_with_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([str(tmp_path)])
    assert f"{tmp_path}: no model there" in capsys.readouterr().err
