"""Chat templates that support different messages, and chats for them."""

from __future__ import annotations

_LOOP = "{{% for m in messages %}}{}{{% endfor %}}"
_TEXT = "<{{ m.role }}>{{ m.content }}"
_PARTS = (
    "<{{ m.role }}>{% for p in m.content %}{% if p.type == 'text' %}[{{ p.text }}]{% endif %}"
    "{% endfor %}"
)
_NO_SYSTEM = "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"

TEMPLATES: dict[str, str] = {
    "plain": _LOOP.format(_TEXT),
    "tools": "{{ tools | tojson }}" + _LOOP.format(_TEXT),
    "parts": _LOOP.format(_PARTS),
    "texts and parts": _LOOP.format(
        f"{{% if m.content is string %}}{_TEXT}{{% else %}}{_PARTS}{{% endif %}}"
    ),
    "no system": _LOOP.format(_NO_SYSTEM + _TEXT),
    "dropped system": _LOOP.format("{% if m.role != 'system' %}" + _TEXT + "{% endif %}"),
    "parts without system": _LOOP.format(_NO_SYSTEM + _PARTS),
    "first characters": _LOOP.format("{{ m.role[0] }}"),
}
"""Templates by the messages that they show."""

_ROLES = {"S": "system", "U": "user", "A": "assistant"}


def chat_of(letters: str) -> list[dict[str, str]]:
    """Return a chat; each letter is a role, and its message has the letter and its place."""
    return [{"role": _ROLES[one], "content": f"{one}{place}"} for place, one in enumerate(letters)]


CHATS = {
    letters: chat_of(letters)
    for letters in ("U", "S", "SU", "SSU", "SAU", "USU", "US", "SUAU", "UAU")
}
