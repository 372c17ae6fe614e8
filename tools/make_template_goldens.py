"""Golden file tests/goldens/templates.json: prompts of transformers' chat templates.

Each case has the files of a folder that decide the template, a chat, and transformers' prompt with
tools and without. The tokenizer has no effect on them.

Needs transformers:

    pip install transformers==4.57.6
    python tools/make_template_goldens.py       # from the checkout, seconds
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

TARGET = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "templates.json"

PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
TOOLS = "{{ tools | tojson }}" + PLAIN
PARTS = (
    "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}"
    "{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}"
)
JSON_FORMS = ("", "ensure_ascii=true", "indent=2", "separators=(',', ':')", "sort_keys=true")
SETTINGS, PLAIN_FILE = "tokenizer_config.json", "chat_template.jinja"
DEFAULT_FILE, TOOL_FILE = (
    f"additional_chat_templates/{name}.jinja" for name in ("default", "tool_use")
)


def named(**templates: str) -> list[dict[str, str]]:
    """Return templates as tokenizer_config.json lists them."""
    return [{"name": name, "template": text} for name, text in templates.items()]


FOLDERS: dict[str, dict[str, Any]] = {
    "one template": {SETTINGS: TOOLS},
    "named": {SETTINGS: named(tool_use="T" + TOOLS, rag="R", default="D" + PLAIN)},
    "named, one for all": {SETTINGS: named(rag="R", default="D" + TOOLS)},
    "named in an object": {SETTINGS: {"tool_use": "T" + TOOLS, "default": "D" + PLAIN}},
    "named in an object, one for all": {SETTINGS: {"default": "D" + TOOLS}},
    "files": {PLAIN_FILE: "D" + PLAIN, TOOL_FILE: "T" + TOOLS},
    "files beside named": {
        SETTINGS: named(default="d", tool_use="t"),
        PLAIN_FILE: "D" + PLAIN,
        TOOL_FILE: "T" + TOOLS,
    },
    "a file beside named": {SETTINGS: named(default="d", tool_use="t"), PLAIN_FILE: "D" + TOOLS},
    "an additional default file": {DEFAULT_FILE: "D" + TOOLS},
    "an additional default file beside the plain one": {
        DEFAULT_FILE: "D" + TOOLS,
        PLAIN_FILE: "P" + PLAIN,
    },
    "an additional default file beside named": {
        DEFAULT_FILE: "D" + TOOLS,
        SETTINGS: named(default="d", tool_use="t"),
    },
    "additional files": {DEFAULT_FILE: "D" + PLAIN, TOOL_FILE: "T" + TOOLS},
    "content in parts": {SETTINGS: "{{ tools }}" + PARTS},
} | {
    f"tojson({form})": {SETTINGS: PLAIN + f"{{{{ tools | tojson({form}) }}}}"}
    for form in JSON_FORMS
}

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "<hé>"}]
PARAMETERS = {"type": "object", "properties": {"å": {"type": "string"}}, "required": ["å"]}
FUNCTION = {"name": "f", "description": "Größe <b>", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}


def write_folder(folder: Path, files: dict[str, Any]) -> Path:
    """Write a tokenizer with templates."""
    Tokenizer(models.WordLevel({"a": 0}, "a")).save(str(folder / "tokenizer.json"))
    for name, template in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        text = json.dumps({"chat_template": template}) if name == SETTINGS else template
        (folder / name).write_text(text)
    return folder


def prompts(files: dict[str, Any], in_parts: bool) -> dict[str, str]:
    """Return transformers' prompts."""
    messages = MESSAGES
    if in_parts:
        parts = ([{"type": "text", "text": one["content"]}] for one in MESSAGES)
        messages = [{**one, "content": found} for one, found in zip(MESSAGES, parts, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(write_folder(Path(folder), files))
        return {
            name: tokenizer.apply_chat_template(
                messages, tools=tools, tokenize=False, add_generation_prompt=True
            )
            for name, tools in (("plain", None), ("tools", [TOOL]))
        }


def main() -> None:
    """Write the golden file."""
    found = [
        {"name": name, "files": files, "prompts": prompts(files, name == "content in parts")}
        for name, files in FOLDERS.items()
    ]
    golden = {"messages": MESSAGES, "tool": TOOL, "folders": found}
    TARGET.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
