"""Chat templates: each failure is a TemplateError with the template's line."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import TemplateError
from genai_layer.chat_templates.rendering import render

MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
NO_PROPERTIES = [{"function": {"parameters": {"properties": None}}}]

BROKEN = {
    "{% for k, v in tools[0].function.parameters.properties | dictsort %}{% endfor %}": "Attribute",
    "{{ '{0}{1}'.format('a') }}": "IndexError",
    "{{ 'x'.encode('foo') }}": "LookupError: unknown encoding: foo",
    "{{ '%d' % 'x' }}": "TypeError",
    "{% include 'other' %}": "TypeError",
    "{{ {}['x'].y }}": "has no attribute 'x'",
    "{{ raise_exception('no tools') }}": "no tools",
    "{% if %}": "Expected an expression",
    "{{ 1 | unknown }}": "No filter named 'unknown'",
    "{{ '\ud800' }}{{ 1 / 0 }}": "ZeroDivisionError",
    "{% macro f() %}{{ x.y.z }}{% endmacro %}{{ f() }}": "'x' is undefined",
}


@pytest.mark.parametrize(("template", "reason"), BROKEN.items())
def test_an_error_names_the_line_and_the_reason(template: str, reason: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render("a\n\n" + template, MESSAGES, True, {"tools": NO_PROPERTIES})
    assert caught.value.problem.startswith("the chat template, line 3, fails on these messages: ")
    assert reason in caught.value.problem


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for i in [1] %}" * 25 + "{% endfor %}" * 25, "too many statically nested blocks"),
        ("{% break %}", "outside loop"),
        ("{% if true %}{% continue %}{% endif %}", "not properly in loop"),
        ("{% block a %}{{ x }}{% break %}{% endblock %}{{ x }}", "outside loop"),
        ("{{ " + "(" * 3000 + ")" * 3000 + " }}", "exceeds limits: RecursionError"),
        ("{{ " + "- " * 3000 + "1 }}", "exceeds limits: RecursionError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "exceeds limits: RecursionError"),
        ("{{ 10 ** 5000 }}", "ValueError: Exceeds the limit"),
        ("{% set y = 10 ** 5000 %}", "ValueError: Exceeds the limit"),
    ],
)
@pytest.mark.parametrize("before", ["a\n\n", "{{ x }}\n{{ 'b'\n }}"])
@pytest.mark.parametrize("after", ["", "\n{{ x }}"])
def test_a_template_that_python_cannot_compile_is_an_error_with_its_line(
    template: str, reason: str, before: str, after: str
) -> None:
    with pytest.raises(TemplateError, match=reason) as caught:
        render(before + template + after, MESSAGES, True, {})
    assert caught.value.problem.startswith("the chat template, line 3, ")
    assert "<template>" not in caught.value.problem


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + "[" * 99 + "x" + "]" * 99 + " + " + "(x, " * 150 + ")" * 150 + " }}",
        "{{ 'a' * 99999 }}{{ 1 / 0 }}",
    ],
)
def test_an_error_has_the_right_line_or_none(template: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render("{{ x }}\n\n" + template + "\n{{ x }}", MESSAGES, True, {})
    assert re.findall("line [0-9]+", caught.value.problem) in ([], ["line 3"])


NAMES = st.sampled_from(
    ["messages", "tools", "none", "'a'", "1", "[]", "{}", "x", "tools[0].function"]
)
STEPS = st.sampled_from(
    [".function", "[0]", "['x']", ".properties", ".items()", ".format(1)", ".encode('x')", "()"]
    + [".split('')", ".index(9)", ".pop()", " + 1", " % 2", " / 0", " is mapping", "[::0]"]
    + [f" | {name}" for name in ("tojson", "dictsort", "first", "int", "length", "join", "items")]
    + [" | tojson(separators=1)", " | batch(0)", " | map(attribute='x') | list", " | sum", " | min"]
    + [" | round(0, 'x')", " | slice(0) | list", " | groupby('x')", " | replace(1)", " | trim(1)"]
)  # fmt: skip
EXPRESSIONS = st.builds(
    lambda name, steps: name + "".join(steps), NAMES, st.lists(STEPS, max_size=3)
)
PARTS = st.one_of(
    EXPRESSIONS.map("{{{{ {} }}}}".format),
    EXPRESSIONS.map("{{% for a, b in {} %}}{{{{ a }}}}{{% endfor %}}".format),
    EXPRESSIONS.map("{{% set y = {} %}}".format),
    st.sampled_from(["a\n", "{% if", "{{", "{% endfor %}", "{% generation %}"]),
)
JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["a", "function", "properties"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["function", "properties", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.lists(PARTS, max_size=4).map("".join), st.lists(JSON, max_size=2))
@settings(max_examples=120, deadline=None)
def test_any_template_gives_a_text_or_a_template_error(template: str, tools: list[Any]) -> None:
    with suppress(TemplateError):
        assert render(template, MESSAGES, True, {"tools": tools})
