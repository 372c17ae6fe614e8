"""Chats: start_chat, its errors, and the tokenizer's chat template."""

from __future__ import annotations

import json

import numpy as np
import pytest

from genai_layer import (
    ChatHistory,
    ModelError,
    PromptError,
    StreamingStatus,
    TemplateError,
    Tokenizer,
)
from genai_layer.testing.toy import EOS, write_toy_folder

pytestmark = [
    pytest.mark.filterwarnings("ignore:start_chat:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:finish_chat:DeprecationWarning"),
]


def prompt_length(pipe) -> int:
    """Return the length of the next prompt, from a turn that is cancelled."""
    lengths: list[int] = []

    def cancel(_: str) -> StreamingStatus:
        return StreamingStatus.CANCEL

    generator = pipe._generator
    run = generator.run

    def watch(prompts, *rest, **named):
        lengths.extend(len(one.ids) for one in prompts)
        return run(prompts, *rest, **named)

    generator.run = watch
    try:
        pipe.generate("?", streamer=cancel)
    finally:
        generator.run = run
    return lengths[0]


def test_a_prompt_contains_all_earlier_turns(speaks) -> None:
    pipe = speaks("hey")
    assert prompt_length(pipe) == 3  # <|user|> ? <|assistant|>
    pipe.start_chat()
    pipe.generate("ab")
    assert prompt_length(pipe) == 3 + (3 + 1) + 3  # with <|user|> ab <|assistant|> hey
    pipe.finish_chat()
    assert prompt_length(pipe) == 3


def test_a_started_chat_ignores_apply_chat_template(speaks) -> None:
    pipe = speaks("hey")
    pipe.start_chat()
    asked = pipe.generate(["?"], apply_chat_template=False).perf_metrics
    assert asked.get_num_input_tokens() == 3
    assert prompt_length(pipe) == 3 + 3 + 3


def test_a_system_message_comes_first_and_ends_with_the_chat(speaks) -> None:
    pipe = speaks("hey")
    pipe.start_chat("be")
    assert prompt_length(pipe) == 3 + 3
    pipe.finish_chat()
    pipe.start_chat()
    assert prompt_length(pipe) == 3
    pipe.start_chat("again")
    assert prompt_length(pipe) == 3 + 6


@pytest.mark.parametrize(
    ("status", "kept"), [(StreamingStatus.CANCEL, False), (StreamingStatus.STOP, True)]
)
def test_cancel_drops_a_turn_and_stop_keeps_it(speaks, status, kept) -> None:
    pipe = speaks("hey")
    pipe.start_chat()
    pipe.generate("ab", streamer=lambda _: status)
    assert prompt_length(pipe) == 3 + (3 + 1 + 1 if kept else 0)


def test_a_list_of_one_text_is_a_turn_that_returns_results(speaks) -> None:
    pipe = speaks("hey")
    pipe.start_chat()
    assert pipe.generate(["ab"]).texts == ["hey"]
    assert prompt_length(pipe) == 3 + (3 + 1) + 3


def test_a_batch_or_token_ids_in_a_chat_are_rejected(speaks) -> None:
    pipe = speaks("hey")
    pipe.start_chat()
    with pytest.raises(PromptError, match="2 texts in a chat: pass one text"):
        pipe.generate(["a", "b"])
    with pytest.raises(PromptError, match=r"token ids in a chat: .* finish_chat\(\)"):
        pipe.generate(np.array([[4]], np.int64))
    assert prompt_length(pipe) == 3, "the chat is unchanged"


def test_a_failed_turn_leaves_the_chat_unchanged(speaks) -> None:
    pipe = speaks("hey", "NPU", MAX_PROMPT_LEN=12)
    pipe.start_chat()
    with pytest.raises(PromptError, match="MAX_PROMPT_LEN=12"):
        pipe.generate("far too long for this")
    assert pipe.generate("ab") == "hey"


def test_a_history_does_not_start_a_chat(speaks) -> None:
    pipe = speaks("hey")
    pipe.generate(ChatHistory([{"role": "user", "content": "abc"}]))
    assert prompt_length(pipe) == 3


def test_start_chat_and_finish_chat_are_deprecated_as_in_openvino_genai(speaks) -> None:
    pipe = speaks("hey")
    with pytest.deprecated_call():
        pipe.start_chat()
    with pytest.deprecated_call():
        pipe.finish_chat()


def test_messages_of_a_history_are_replaced_by_copies() -> None:
    history, given = ChatHistory([{"role": "user", "content": "a"}]), [{"role": "system"}]
    history.set_messages(given)
    given[0]["role"] = "tool"
    assert history.get_messages() == [{"role": "system"}]


def test_a_history_is_a_list_of_messages() -> None:
    history = ChatHistory()
    assert not history
    history.append({"role": "user", "content": "a"})
    history.get_messages()[0]["content"] = "changed"
    assert history.get_messages() == [{"role": "user", "content": "a"}]
    history.set_tools([1])
    assert history.pop()["content"] == "a"
    with pytest.raises(IndexError):
        history.pop()
    history.clear()
    assert history.get_tools() == []


MESSAGES = [{"role": "user", "content": "hi"}]


def with_template(tmp_path, template: str) -> Tokenizer:
    return Tokenizer(write_toy_folder(tmp_path, chat_template=template))


def render(tokenizer: Tokenizer, **options) -> str:
    return tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, **options)


def test_templates_have_variables_for_tokens_tools_and_context(tmp_path) -> None:
    template = "{{ bos_token }}{{ messages[0]['role'][0] }}{{ tools | tojson }}{{ mood }}"
    tokenizer = with_template(tmp_path, template)
    history = ChatHistory(MESSAGES)
    history.set_tools(["own"])
    history.set_extra_context({"mood": "calm"})
    apply = tokenizer.apply_chat_template
    assert apply(history, True) == '<bos>u["own"]calm'
    assert apply(history, True, tools=[{"a": "é"}], extra_context={"mood": "gay"}) == (
        '<bos>u[{"a": "é"}]gay'
    )
    assert apply(history, True, chat_template="{{ mood }}!") == "calm!"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{% if %}", "fails on these messages"),
        ("{{ messages.append(1) }}", "fails on these messages"),
        ("{{ ''.__class__.__mro__ }}", "fails on these messages"),
        ("{{ cycler.__init__.__globals__ }}", "fails on these messages"),
        ("{{ undefined_thing.attribute }}", "fails on these messages"),
        ("{% for i in range(99999999) %}x{% endfor %}", "fails on these messages"),
        ("{% for i in range(9999) %}{{ 'x' * 9999 }}{% endfor %}", "characters"),
        ("{{ 1 / 0 }}", "fails on these messages"),
        ("", "has no chat template"),
        ("{# nothing #}", "empty prompt"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "exceeds limits"),
    ],
)
def test_a_broken_or_hostile_template_is_an_error(tmp_path, template, message) -> None:
    with pytest.raises(TemplateError, match=message):
        render(with_template(tmp_path, template))


def test_the_jinja_file_wins_over_the_json_files_and_those_over_the_settings(tmp_path) -> None:
    folder = write_toy_folder(tmp_path, chat_template="settings")
    assert Tokenizer(folder).chat_template == "settings"
    for file in ("processor_config.json", "chat_template.json"):
        (folder / file).write_text(json.dumps({"chat_template": file}))
        assert Tokenizer(folder).chat_template == file
    (folder / "chat_template.jinja").write_text("jinja")
    tokenizer = Tokenizer(folder)
    tokenizer.set_chat_template("mine")
    assert tokenizer.chat_template == tokenizer.get_original_chat_template() == "mine"


def test_of_several_templates_the_default_one_is_used(tmp_path) -> None:
    templates = [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]
    folder = write_toy_folder(tmp_path, chat_template=templates)
    assert Tokenizer(folder).chat_template == "d"


def test_special_tokens_have_texts_and_ids(folder) -> None:
    tokenizer = Tokenizer(folder)
    assert (tokenizer.get_eos_token(), tokenizer.get_eos_token_id()) == ("<eos>", EOS)
    assert tokenizer.get_bos_token_id() == 1
    assert tokenizer.get_pad_token() == "<pad>"
    (folder / "special_tokens_map.json").write_text(
        json.dumps({"eos_token": {"content": "<bos>"}, "pad_token": None})
    )
    (folder / "config.json").write_text("{}")
    assert Tokenizer(folder).get_eos_token_id() == 1


def test_decoding_returns_the_text(folder) -> None:
    tokenizer = Tokenizer(folder)
    encoded = tokenizer.encode(["abc", "d"])
    assert tokenizer.decode(encoded.input_ids.data[0].tolist()) == "abc"
    assert tokenizer.decode([EOS]) == ""
    assert tokenizer.decode([EOS], skip_special_tokens=False) == "<eos>"
    assert tokenizer.decode([10**6]) == ""


def test_a_file_that_is_not_a_tokenizer_is_rejected(tmp_path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(ModelError, match="not a tokenizer"):
        Tokenizer(tmp_path)


def test_the_generation_tag_is_rendered_as_its_body(folder) -> None:
    """Phi-4-reasoning's template has the tag; transformers renders its body unchanged."""
    tokenizer = Tokenizer(folder)
    tokenizer.set_chat_template(
        "{% for m in messages %}{% if m.role == 'assistant' %}"
        "{% generation %}{% set x = 'in' %}<{{ m.content }}>{{ x }}{% endgeneration %}{{ x }}"
        "{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert tokenizer.apply_chat_template(said, add_generation_prompt=False) == "hi<hello>in"


def test_a_token_that_only_the_configuration_lists_is_special(folder) -> None:
    known = Tokenizer(folder).get_vocab()
    number = max(known.values()) + 1
    listed = {str(number): {"content": "<|think|>", "special": True}}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": listed}))
    tokenizer = Tokenizer(folder)
    ids = tokenizer.encode("<|think|>").input_ids.data[0].tolist()
    assert number in ids
    assert "<|think|>" not in tokenizer.decode(ids)
    assert "<|think|>" in tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("listed", [{"9999": {"content": "<|far|>"}}, {"x": {}}, [1]])
def test_invalid_added_tokens_are_named(folder, listed) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": listed}))
    with pytest.raises(ModelError, match="added"):
        Tokenizer(folder)
