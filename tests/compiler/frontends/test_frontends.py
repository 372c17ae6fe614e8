"""Both frontends read real models, which compute the results of independent runtimes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.errors import BadModel, UnsupportedModel, UnsupportedOps
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.huggingface.families import FAMILIES
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter

Goldens = Mapping[str, np.ndarray]


def feeds(ids: np.ndarray, past: int) -> dict[str, np.ndarray]:
    n = ids.shape[1]
    return {
        "input_ids": ids,
        "attention_mask": np.ones((1, past + n), np.int64),
        "position_ids": np.arange(past, past + n, dtype=np.int64)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def check_against(model: Model, goldens: Goldens, oracle: str) -> None:
    model.verify()
    interpreter = Interpreter(model)
    for n in (1, 7, 100):
        interpreter.reset()
        logits = interpreter.run(feeds(goldens[f"prompt_{n}"], 0))["logits"][0, -1]
        expected = goldens[f"{oracle}_logits_{n}"]
        assert np.abs(logits - expected).max() <= 1e-4 * np.abs(expected).max()
    interpreter.reset()
    ids, greedy = goldens["greedy_prompt"], []
    for past in range(ids.shape[1], ids.shape[1] + 10):
        logits = interpreter.run(feeds(ids, past - ids.shape[1]))["logits"][0, -1]
        greedy.append(int(logits.argmax()))
        ids = np.array([greedy[-1:]], np.int64)
    assert greedy == goldens[f"{oracle}_greedy"][:10].tolist()


def test_a_folder_computes_what_transformers_computes(
    llama_8m: Path, llama_8m_goldens: Goldens
) -> None:
    check_against(read_folder(llama_8m), llama_8m_goldens, "hf")


@pytest.mark.long
def test_an_exported_ir_computes_what_openvino_computes(
    llama_8m_ir: Path, llama_8m_goldens: Goldens
) -> None:
    check_against(read_ir(llama_8m_ir), llama_8m_goldens, "ov")


def test_both_frontends_return_the_same_inputs_outputs_and_variables(
    llama_8m: Path, llama_8m_ir: Path
) -> None:
    ours, theirs = read_folder(llama_8m), read_ir(llama_8m_ir)
    assert {(p.name, p.type) for p in ours.inputs} == {(p.name, p.type) for p in theirs.inputs}
    assert [(p.name, p.type) for p in ours.outputs] == [(p.name, p.type) for p in theirs.outputs]
    assert {v.name for v in ours.variables()} == {v.name for v in theirs.variables()}


@pytest.mark.long
def test_a_model_survives_the_round_trip_through_text(llama_8m_ir: Path) -> None:
    model = read_ir(llama_8m_ir)
    again = Model.parse(model.text())
    assert again.module.is_structurally_equivalent(model.module)


@pytest.fixture
def folder(llama_8m: Path, tmp_path: Path) -> Path:
    """Copy of the folder for damage; its weights are a link."""
    (tmp_path / "config.json").write_bytes((llama_8m / "config.json").read_bytes())
    (tmp_path / "model.safetensors").symlink_to(llama_8m / "model.safetensors")
    return tmp_path


def change_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "error", "says"),
    [
        ({"model_type": "mamba"}, UnsupportedModel, "model_type 'mamba'"),
        ({"hidden_size": -1}, BadModel, "hidden_size must be a positive integer"),
        ({"hidden_size": "wide"}, BadModel, "hidden_size must be a positive integer"),
        ({"hidden_size": 512}, BadModel, "model.embed_tokens.weight: is [8192, 256]"),
        ({"num_hidden_layers": 9}, BadModel, "model.layers.8.input_layernorm.weight"),
        ({"hidden_act": "gelu"}, UnsupportedModel, "hidden_act = 'gelu'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, UnsupportedModel, "rope_type 'yarn'"),
        ({"num_key_value_heads": 3}, BadModel, "must divide"),
        ({"rms_norm_eps": "small"}, BadModel, "rms_norm_eps must be a positive number"),
    ],
)
def test_a_config_that_contradicts_the_checkpoint_is_named(
    folder: Path, values: dict[str, object], error: type[Exception], says: str
) -> None:
    change_config(folder, **values)
    with pytest.raises(error) as raised:
        read_folder(folder)
    assert says in str(raised.value)


def test_the_refusal_of_another_family_names_the_export_command(folder: Path) -> None:
    change_config(folder, model_type="mamba", architectures=["MambaForCausalLM"])
    with pytest.raises(UnsupportedModel) as raised:
        read_folder(folder)
    assert f"(supported: {', '.join(FAMILIES)})" in str(raised.value)
    command = f"optimum-cli export openvino -m {folder} --task text-generation-with-past OUT"
    assert str(raised.value).endswith(f"export it to OpenVINO IR: {command}")


@pytest.mark.parametrize(
    ("model_type", "architecture", "task"),
    [
        ("bert", "BertModel", "feature-extraction"),
        ("bert", "BertForMaskedLM", "feature-extraction"),
        ("bert", "BertLMHeadModel", "feature-extraction"),
        ("bert", "BertForSequenceClassification", "text-classification"),
        ("bert", None, "feature-extraction"),
        ("whisper", "WhisperForConditionalGeneration", "automatic-speech-recognition-with-past"),
        ("whisper", None, "automatic-speech-recognition-with-past"),
        ("t5", "T5ForConditionalGeneration", "text2text-generation-with-past"),
        ("t5", None, "text2text-generation-with-past"),
        ("falcon", "FalconForCausalLM", "text-generation-with-past"),
    ],
)
def test_the_export_command_has_the_task_of_the_architecture(
    folder: Path, model_type: str, architecture: str | None, task: str
) -> None:
    """The exporter rejects text generation for BertLMHeadModel, measured with optimum-intel."""
    named = [architecture] if architecture else None
    change_config(folder, model_type=model_type, architectures=named)
    with pytest.raises(UnsupportedModel, match=f"-m {folder} --task {task} OUT$"):
        read_folder(folder)


def test_the_export_command_of_an_unknown_type_leaves_the_task_open(folder: Path) -> None:
    change_config(folder, model_type="another", architectures=["AnotherModel"])
    with pytest.raises(UnsupportedModel, match=r"--task TASK OUT; optimum-cli .* lists the tasks$"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("model_type", "architecture"), [("wav2vec2", "Wav2Vec2ForCTC"), ("vit", "ViTModel")]
)
def test_no_export_is_advised_for_a_model_that_nothing_reads(
    folder: Path, model_type: str, architecture: str
) -> None:
    change_config(folder, model_type=model_type, architectures=[architecture])
    with pytest.raises(UnsupportedModel, match="no part of this stack reads such models"):
        read_folder(folder)


def test_an_untied_head_is_read_from_the_checkpoint(folder: Path) -> None:
    change_config(folder, tie_word_embeddings=False)
    with pytest.raises(BadModel, match=r"lm_head\.weight: the checkpoint does not have this"):
        read_folder(folder)


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"config\.json: No such file"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the header of 0 bytes exceeds"),
        (b"\xff" * 8 + b"{}", "exceeds the 10 bytes"),
        (b"\x02" + bytes(7) + b"[]", "the header is not a JSON object"),
        (b"\x02" + bytes(7) + b"{]", "the header is not JSON"),
    ],
)
def test_broken_safetensors_are_named(folder: Path, content: bytes, says: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(BadModel, match=says):
        read_folder(folder)


def test_truncated_safetensors_name_the_tensor(folder: Path, llama_8m: Path) -> None:
    content = (llama_8m / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(content[:-1000])
    with pytest.raises(BadModel, match=r"mlp\.down_proj\.weight: bytes .* are outside the file"):
        read_folder(folder)


@pytest.fixture
def xml(llama_8m_ir: Path, tmp_path: Path) -> Path:
    """Copy of the IR for damage; its weights are a link."""
    copy = tmp_path / "openvino_model.xml"
    copy.write_bytes(llama_8m_ir.read_bytes())
    copy.with_suffix(".bin").symlink_to(llama_8m_ir.with_suffix(".bin"))
    return copy


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("<net ", "<!DOCTYPE net [<!ENTITY a 'b'>]><net ", "document type"),
        ("</layers>", "", "is not an OpenVINO IR"),
        ('to-layer="5"', 'to-layer="5000"', "an edge ends at unknown port 0 of layer 5000"),
        ('from-port="0"', 'from-port="77"', "begins at unknown port 77 of layer"),
        ('offset="0"', 'offset="99999999"', "the constant is at"),
        ('size="8"', 'size="7"', "7 bytes for i64"),
        ('shape="?,?"', 'shape="?,x"', "'?,x' is not a valid shape"),
        ('special_zero="true"', "", "attribute special_zero is missing"),
    ],
)
def test_a_damaged_ir_names_file_and_layer(xml: Path, old: str, new: str, says: str) -> None:
    text = xml.read_text()
    assert old in text
    xml.write_text(text.replace(old, new, 1))
    with pytest.raises(BadModel) as raised:
        read_ir(xml)
    assert says in str(raised.value)
    assert xml.stem in str(raised.value)


def test_layers_in_a_cycle_are_refused(xml: Path) -> None:
    text = xml.read_text()
    edge = '<edge from-layer="0"'
    assert edge in text
    loop = '<edge from-layer="1151" from-port="2" to-layer="1127" to-port="0" />'
    old = next(line for line in text.splitlines() if 'to-layer="1127" to-port="0"' in line)
    xml.write_text(text.replace(old.strip(), loop))
    with pytest.raises(BadModel, match="cycle"):
        read_ir(xml)


def test_a_missing_bin_is_named(xml: Path) -> None:
    xml.with_suffix(".bin").unlink()
    with pytest.raises(BadModel, match=r"openvino_model\.bin"):
        read_ir(xml)


def test_all_unsupported_ops_are_listed_together(xml: Path) -> None:
    text = xml.read_text()
    text = text.replace('type="Swish"', 'type="Mish"').replace('type="Cos"', 'type="Cosh"')
    xml.write_text(text.replace('element_type="i32"', 'element_type="f4e2m1"'))
    with pytest.raises(UnsupportedOps) as raised:
        read_ir(xml)
    kinds = {kind for kind, _ in raised.value.ops}
    assert {"Mish-4", "Cosh-1", "Const-1 of f4e2m1"} <= kinds
    assert "layers.0.mlp.act_fn" in str(raised.value)
