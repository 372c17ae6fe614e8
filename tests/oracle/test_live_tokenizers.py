"""Tokenizers read from openvino_tokenizers' models compared to the real openvino_genai, live.

Needs openvino_genai and openvino_tokenizers; without them the tests are skipped.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.golden_tokenizers import Golden
from tokenizers import Regex, normalizers

from genai_layer import Tokenizer
from genai_layer.openvino_tokenizer.normalizers import simple_case_folding
from genai_layer.openvino_tokenizer.patterns import translate

pytestmark = pytest.mark.oracle

ov = pytest.importorskip("openvino")
openvino_genai = pytest.importorskip("openvino_genai")
openvino_tokenizers = pytest.importorskip("openvino_tokenizers")
steps = pytest.importorskip("openvino_tokenizers.tokenizer_pipeline")

FAMILIES = (
    *("demo", "gpt2", "prefix", "qwen2", "llama3", "llama2", "mistral", "gemma"),
    *("bert", "bert_cased", "unigram"),
)
PARTS = [
    *"aeinst HMT,.!?'  \n\t\r0123éßäÀ日本のя́ẞİſKςⅣ½©😀々·ः\u200d\u3000\u00a0\x00\x7fᎠꭰ",
    *("Hello", "the", "don't", " '", "##", " n't", "\r\n", "한국", "👍🏽"),
    *("<special>", "<plain>", "<spaces>", "<s>", "</s>", "[SEP]", "[MASK]", "<|im_end|>"),
]
CHARACTERS = [
    character
    for character in map(chr, range(1, 0x110000))
    if unicodedata.category(character) not in ("Cn", "Cs")
]
"""All characters of Python's version of Unicode; the libraries know different versions of it."""


@pytest.mark.parametrize("name", FAMILIES)
def test_random_texts_have_the_real_ids_and_decode_to_the_real_text(
    golden: Callable[[str], Golden], tmp_path: Path, name: str
) -> None:
    path, draw = golden(name).write(tmp_path), random.Random(name)
    ours, real = Tokenizer(path), openvino_genai.Tokenizer(path)
    for _ in range(300):
        text = "".join(draw.choices(PARTS, k=draw.randint(0, 25)))
        for special in (True, False):
            expected = real.encode(text, add_special_tokens=special).input_ids.data[0].tolist()
            found = np.asarray(ours.encode(text, add_special_tokens=special).input_ids)[0]
            assert found.tolist() == expected, repr(text)
            if expected:
                for skip in (True, False):
                    decoded = real.decode(expected, skip_special_tokens=skip)
                    assert ours.decode(expected, skip_special_tokens=skip) == decoded


def run(step: Any, texts: list[str]) -> list[str]:
    """Run a step of the real openvino_tokenizers on texts."""
    core = ov.Core()
    core.add_extension(
        str(next(Path(openvino_tokenizers.__file__).parent.glob("lib/*tokenizers*")))
    )
    opset = openvino_tokenizers._get_opset_factory("opset15")
    parameter = ov.op.Parameter(ov.Type.string, ov.PartialShape(["?"]))
    unpacked = opset.create("StringTensorUnpack", parameter.outputs()).outputs()
    packed = opset.create("StringTensorPack", step.get_ov_subgraph(unpacked)).outputs()
    compiled = core.compile_model(ov.Model(packed, [parameter]), "CPU")
    return [str(text) for text in compiled([np.array(texts)])[0]]


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\s", r"\w", r"\d", r"\p{L}", r"\p{Mn}", r"\p{P}", r"\p{Han}", r"\p{Cf}"),
        *(r"[^\s\p{L}\p{N}]", r"[\x00-\x08\x7F-\x9F]", "(?i:s)"),
    ],
)
def test_a_pattern_matches_the_same_characters(pattern: str) -> None:
    found = run(steps.RegexNormalizationStep(pattern, "#"), CHARACTERS)
    ours = normalizers.Replace(Regex(translate(pattern)), "#")
    assert [ours.normalize_str(character) for character in CHARACTERS] == found


def test_case_folding_is_unicodes_simple_one_after_decomposition() -> None:
    step = steps.CharsmapStep(
        normalization_form="nfd", case_fold=True, remove_extra_whitespaces=False
    )
    ours = normalizers.Sequence([normalizers.NFD(), *simple_case_folding()])
    found = run(step, CHARACTERS)
    different = [c for c, x in zip(CHARACTERS, found, strict=True) if ours.normalize_str(c) != x]
    assert set(different) <= {"\U00011938"}
