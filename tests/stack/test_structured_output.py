"""Structured output of a language model on the simulated NPU and on the real OpenVINO's CPU."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from tests.stack.terse_model import save_terse_model

from genai_layer import LLMPipeline
from genai_layer import StructuredOutputConfig as Config

QUESTION = "Who reads a blob?"
SAMPLED = {"do_sample": True, "temperature": 0.8, "rng_seed": 3}


class Reader(BaseModel):
    name: str = Field(pattern=r"^[A-Z][a-z]{1,20}$")
    age: int = Field(ge=0, le=128)
    kind: Literal["driver", "engine", "tool"]


class Transfer(BaseModel):
    number: int = Field(ge=0, le=1 << 14)
    megabytes: float = Field(ge=0, le=1e6)
    target: Literal["CMX", "DDR"] | None


class Call(BaseModel):
    name: Literal["read"]
    arguments: Reader


SCHEMAS = [Reader, Transfer, list[Call] | Transfer]


@pytest.fixture(scope="module")
def terse(demo: Path, demo_ir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    for file in (*demo.glob("*.json"), demo_ir, demo_ir.with_suffix(".bin")):
        (folder / file.name).write_bytes(file.read_bytes())
    return save_terse_model(folder, tmp_path_factory.mktemp("terse"))


@pytest.fixture(scope="module")
def pipes(terse: Path) -> list[LLMPipeline]:
    npu = LLMPipeline(terse, "NPU", MAX_PROMPT_LEN=128)
    return [npu, LLMPipeline(terse, "CPU", INFERENCE_PRECISION_HINT="f32")]


@pytest.mark.parametrize("sampled", [{}, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_json_is_valid(pipes: list[LLMPipeline], schema: type, sampled: dict[str, object]) -> None:
    adapter = TypeAdapter(schema)
    text = json.dumps(adapter.json_schema())
    for pipe in pipes:
        for config in (Config(json_schema=text), Config(compound_grammar=Config.JSONSchema(text))):
            answer = pipe.generate(
                QUESTION, structured_output_config=config, max_new_tokens=100, **sampled
            )
            adapter.validate_json(answer)


TEXTS = {
    r"(Yes|No), because [a-z ]{1,40}\.": Config(regex=r"(Yes|No), because [a-z ]{1,40}\."),
    r"[a-z._%+-]{1,64}@[a-z]{1,9}\.[a-z]{2}": Config(
        regex=r"^[a-z._%+-]{1,64}@[a-z]{1,9}\.[a-z]{2}$"
    ),
    r"\d{4}-\d\d-\d\d": Config(grammar='root ::= d{4} "-" d d "-" d d\nd ::= [0-9]'),
    r"reads (the|a) blob|waits": Config(
        structural_tags_config=Config.ConstString("reads ")
        + (Config.ConstString("the") | Config.ConstString("a"))
        + Config.ConstString(" blob")
        | Config.ConstString("waits")
    ),
    r'<call>\[\{"name":"read",.*\}\]</call>': Config(
        structural_tags_config=Config.TriggeredTags(
            ["<call"],
            [
                Config.Tag(
                    "<call>",
                    Config.JSONSchema(
                        json.dumps(
                            TypeAdapter(list[Call]).json_schema() | {"minItems": 1, "maxItems": 1}
                        )
                    ),
                    "</call>",
                )
            ],
            at_least_one=True,
            stop_after_first=True,
        )
    ),
}


@pytest.mark.parametrize("pattern", TEXTS)
def test_texts_of_both_devices_follow_a_grammar(pipes: list[LLMPipeline], pattern: str) -> None:
    npu, cpu = (
        pipe.generate(QUESTION, max_new_tokens=90, structured_output_config=TEXTS[pattern])
        for pipe in pipes
    )
    assert npu == cpu
    assert re.fullmatch(pattern, npu)


def test_a_text_of_the_grammar_is_that_without_the_grammar(demo: Path) -> None:
    pipe = LLMPipeline(demo, "NPU", MAX_PROMPT_LEN=128)
    plain = pipe.generate(QUESTION, max_new_tokens=60)
    for config in (
        Config(regex=r"[\w\s,.:;()'-]+"),
        Config(structural_tags_config=Config.AnyText()),
        Config(grammar='root ::= word (" " word)* "."\nword ::= [^ .]+ | word "." word'),
    ):
        assert pipe.generate(QUESTION, max_new_tokens=60, structured_output_config=config) == plain
