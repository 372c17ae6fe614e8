"""The page of npu-serve in headless Chromium, with the real server and the demo model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from tests.stack.serve.conftest import Serve
from tests.stack.serve.page import KEY, Page

from genai_layer.serve.observe import routes

ROOT = Path(__file__).resolve().parents[3]
ENDLESS = "x" * 100
"""Question that the demo model answers without an end."""
LONGEST = 300
"""Tokens that the server admits in an answer."""
ATTACKS = r"""
<script>document.title = "attacked"</script> <img src=x onerror='document.title="attacked"'>
[link](javascript:document.title="attacked") [data](data:text/html,<script>1</script>)
![image](http://192.0.2.1/x.png) <svg onload=alert(1)> <a href="javascript:1">a</a>
<form action=/><button>b</button></form> <style>*{display:none}</style> `<b>code</b>`
"""


@pytest.fixture(scope="module")
def browser(load_module: Callable[[Path], Any]) -> Iterator[Any]:
    """Module tools/browser.py and a running browser."""
    tool = load_module(ROOT / "tools" / "browser.py")
    missing = tool.missing_package()
    if missing is not None:
        pytest.skip(f"{missing} is not installed")
    with tool.open_browser() as driver:
        tool.driver = driver
        yield tool


@pytest.fixture(scope="module")
def url(browser: Any, serve_demo: Serve) -> Iterator[str]:
    """Address of a real server that asks for a key; without a browser it is not started."""
    with serve_demo("--api-key", KEY, "--max-tokens", str(LONGEST)) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Page]:
    """The page, opened, at the size of a desk's screen; in the end nothing may be in its log."""
    browser.set_screen(browser.driver, 1440, 900)
    page = Page(browser.driver, url)
    page.open()
    yield page
    assert page.driver.get_log("browser") == []


@pytest.fixture
def modules(browser: Any, url: str) -> Page:
    """The page's modules, without the page."""
    browser.driver.get(f"{url}page/style.css")
    return Page(browser.driver, url)


def test_an_answer_streams_and_the_pictures_show_its_rows(page: Page) -> None:
    page.ask("What is an NPU?")
    page.wait(lambda: page.answers() and page.idle())
    (answer,) = page.answers()
    assert "neural" in answer
    assert re.search(r"\d+ tokens in, \d+ out", page.text("messages"))
    page.wait(lambda: "finished" in page.text("shown"))
    assert re.search(r"answer: [1-9]\d* rows", page.text("kv-growth-facts"))
    assert "copied here: 0 bytes" in page.text("data-flow-facts")
    _, copied, _ = page.steps()
    assert re.match(r"prefill.present\[0:(\d+)\] → generate.past\[0:\1\]", copied)
    assert "copy_kvcache(): not performed here, the models share these tensors" in copied
    assert "utilisation" in page.text("variants-facts")
    assert "weights" in page.text("memory-facts")
    assert "(modelled)" in page.text("timeline-facts")
    assert page.text("ttft") != "–"
    assert page.text("queue").startswith("0 of ")


def test_a_conversation_survives_a_reload_and_ends_with_a_new_chat(page: Page) -> None:
    page.ask("What is a blob?")
    page.wait(lambda: page.answers() and page.idle())
    answers = page.answers()
    page.driver.refresh()
    page.wait(lambda: page.answers() == answers)
    page.press(KEY + Keys.ENTER)
    page.driver.get_log("browser")  # the 401 of the reload
    page.get("new-chat").click()
    assert page.answers() == []
    assert page.get("welcome").is_displayed()


def test_stop_ends_an_answer_and_frees_its_slot(page: Page) -> None:
    page.get("settings").find_element(By.TAG_NAME, "summary").click()
    page.get("max-tokens").clear()
    page.get("max-tokens").send_keys(str(LONGEST))
    page.stop_at_the_first_text()
    page.ask(ENDLESS)
    page.wait(lambda: any(page.answers()))
    page.wait(page.idle)
    assert "Stopped." in page.text("messages")
    page.wait(lambda: page.text("busy").startswith("0 of "))


def test_an_error_is_shown_in_words_and_the_chat_goes_on(page: Page) -> None:
    page.ask("word " * 260)
    page.wait(lambda: page.driver.find_elements(By.CLASS_NAME, "failure"))
    assert "MAX_PROMPT_LEN" in page.driver.find_element(By.CLASS_NAME, "failure").text
    assert len(page.driver.get_log("browser")) == 1  # the status 400
    page.ask("What is an NPU?")
    page.wait(lambda: page.answers() and page.idle())
    assert "neural" in page.answers()[0]


def test_sliders_show_what_would_happen(page: Page) -> None:
    page.plan(3000)
    assert "MAX_PROMPT_LEN" in page.text("problem")
    assert "no room" in page.text("kv-growth")
    page.get("if-max-prompt").send_keys(Keys.END)
    page.wait(lambda: "write position 3,000" in page.text("kv-growth"))
    assert page.text("problem") == ""
    page.get("if-answer").send_keys(Keys.PAGE_UP)
    page.wait(lambda: "write position 3,000" not in page.text("kv-growth"))
    page.get("source-live").send_keys(Keys.SPACE)
    assert not page.get("sliders").is_displayed()


def test_the_slider_of_the_prompt_changes_the_variant(page: Page) -> None:
    page.plan(20)
    page.get("if-min-response").send_keys(Keys.HOME)
    page.get("if-max-prompt").send_keys(Keys.END)
    page.wait(lambda: "reads 256 rows" in page.text("data-flow"))
    assert "needed 84" in page.text("variants")
    page.get("if-prompt").send_keys(Keys.PAGE_UP)
    page.wait(lambda: "reads 1,024 rows" in page.text("data-flow"))
    assert page.get("if-prompt-number").get_attribute("value") != "20"


def test_the_length_of_an_answer_is_the_server_s_until_it_is_chosen(page: Page) -> None:
    page.ask(ENDLESS)
    page.wait(lambda: page.answers() and page.idle())
    assert f"{LONGEST} out. Ended at a limit of the server: --max-tokens" in page.text("messages")
    page.get("new-chat").click()
    page.get("settings").find_element(By.TAG_NAME, "summary").click()
    field = page.get("max-tokens")
    assert field.get_attribute("placeholder") == f"{LONGEST}, the server's limit"
    field.send_keys(str(LONGEST + 1))
    page.ask("What is a blob?")
    assert page.answers() == [], "an answer that the server rejects is not requested"
    field.clear()
    field.send_keys("5")
    page.get("question").send_keys(Keys.ENTER)
    page.wait(lambda: "5 out. Ended at “Max tokens”" in page.text("messages"))


def test_a_prompt_of_one_token_needs_its_row_and_the_reserve(page: Page) -> None:
    """The article's Hello: one row and the reserve, although no prefill model runs."""
    page.plan(1)
    assert "stored so far: 1 row" in page.text("variants-facts")
    assert "513 = 1 stored + 512 reserved" in page.text("variants-facts")
    read, copied, row = page.steps()
    assert "not performed: a generate model reads a prompt of one token" in read
    assert "prefill.present[0:1] → generate.past[0:1]" in copied
    assert "generate.past[0:1]" in row
    assert "num_stored_tokens = 1" in row


def test_every_number_is_planned_or_has_a_problem(page: Page) -> None:
    page.suppose(99_999)
    page.wait(lambda: "had 99,999 tokens" in page.text("shown"))
    assert "MAX_PROMPT_LEN" in page.text("problem")
    for tokens in (0, routes.LONGEST + 1):
        page.suppose(tokens)
        page.wait(lambda: page.text("problem").startswith("Prompt, tokens: "))
        page.plan(routes.LONGEST)


def test_a_slider_walks_through_the_steps_from_prefill_to_generate(page: Page) -> None:
    page.plan(100)
    assert page.text("step-value") == "2 of 2"
    page.get("if-answer").send_keys(Keys.ARROW_RIGHT * 3)
    page.wait(lambda: page.text("step-value") == "5 of 5")
    assert "num_stored_tokens 103 of 640" in page.text("data-flow")
    assert "generate.past[102:103]" in page.steps()[2]
    page.get("step").send_keys(Keys.ARROW_LEFT)
    page.wait(lambda: "num_stored_tokens 102 of 640" in page.text("data-flow"))
    page.get("step").send_keys(Keys.HOME)
    page.wait(lambda: "num_stored_tokens 100 of 640" in page.text("data-flow"))
    assert [line.count("num_stored_tokens =") for line in page.steps()] == [1, 0, 0]
    assert page.get("step").get_attribute("aria-valuetext") == "1 of 5"


def test_the_keyboard_reaches_every_control(page: Page) -> None:
    page.plan(300)
    script = """
      return [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
        .filter((node) => node.checkVisibility() && !(node.type === "radio" && !node.checked))
        .map((node) => node.id || node.textContent)"""
    controls = set(page.driver.execute_script(script))
    page.driver.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    reached = set[str]()
    for _ in range(len(controls) + 8):
        page.press(Keys.TAB)
        node = page.driver.switch_to.active_element
        reached.add(node.get_attribute("id") or node.text)
    assert controls <= reached


def test_every_control_and_picture_has_a_name(page: Page) -> None:
    page.ask("What is an NPU?")
    page.wait(lambda: page.answers() and page.idle())
    page.plan(300)
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {
        "button", "textbox", "combobox", "spinbutton", "slider", "radio", "link", "meter",
        "image", "log", "region", "group", "figure", "DisclosureTriangle",
    }  # fmt: skip
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", ""), node)
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in named
    ]
    roles = [role for role, _, _ in found]
    assert (roles.count("slider"), roles.count("radio")) == (5, 2)
    images = [node for role, _, node in found if role == "image"]
    assert len(images) == 5
    assert all(node["description"]["value"] for node in images)
    assert [role for role, name, _ in found if not name.strip()] == []
    figures = [name for role, name, _ in found if role == "figure"]
    assert figures == [title.text for title in page.driver.find_elements(By.TAG_NAME, "h3")[2:]]


@pytest.mark.parametrize("width", [320, 768])
def test_a_narrow_window_does_not_scroll_sideways(page: Page, browser: Any, width: int) -> None:
    browser.set_screen(page.driver, width, 640)
    page.ask("What is an NPU?")
    page.wait(lambda: page.answers() and page.idle())
    assert page.overflow() == 0
    page.plan(3000)
    assert page.overflow() == 0


def test_a_picture_shows_different_things_in_different_colours(page: Page, browser: Any) -> None:
    page.plan(300)
    script = """
      return [...document.querySelectorAll("figure")].map((figure) =>
        [...figure.querySelectorAll(".swatch rect")].map((swatch) => {
          const { fill, stroke, strokeDasharray } = getComputedStyle(swatch);
          return `${fill} ${stroke} ${strokeDasharray}`;
        }))"""
    for colours in ("light", "dark"):
        browser.set_screen(page.driver, 1440, 900, colours)
        for looks in page.driver.execute_script(script):
            assert len(set(looks)) == len(looks)


def test_colours_follow_the_system_until_the_switch_is_used(page: Page, browser: Any) -> None:
    script = "return getComputedStyle(document.body).backgroundColor"
    light = page.driver.execute_script(script)
    browser.set_screen(page.driver, 1440, 900, "dark")
    dark = page.driver.execute_script(script)
    assert dark != light
    page.get("theme").click()
    assert page.driver.execute_script(script) == light
    assert page.get("theme").get_attribute("aria-pressed") == "false"


def test_markup_in_an_answer_is_text(page: Page) -> None:
    script = """
      const [text, done] = arguments;
      import("/page/markdown.js").then(({ render }) => {
        const box = document.createElement("div");
        box.append(render(text));
        document.body.append(box);
        done([...box.querySelectorAll("*")].map((node) => node.outerHTML.slice(0, 200)));
      });"""
    nodes = page.driver.execute_async_script(script, ATTACKS)
    assert {re.match("<([a-z]+)", node)[1] for node in nodes} <= {"p", "br", "code", "a"}
    assert all(re.match(r"<a rel=[^<]*>", node) for node in nodes if node.startswith("<a "))
    assert page.driver.title == "npu-serve"
    assert "<script>" in page.driver.find_element(By.TAG_NAME, "body").text


def test_the_page_knows_its_request_before_the_first_token(modules: Page) -> None:
    script = """
      const done = arguments[0];
      const init = { headers: { "x-reply-id": "a" } };
      window.fetch = async () => new Response(new ReadableStream(), init);
      import("/page/completion.js").then(async ({ complete }) => {
        done((await complete("demo", [], {}, null).next()).value);
      });"""
    first = modules.driver.execute_async_script(script)
    assert first == {"id": "a", "text": "", "finish": None, "usage": None}


def test_the_page_waits_for_a_model_that_is_being_loaded(modules: Page) -> None:
    script = """
      const done = arguments[0];
      const links = [];
      const events = ["loading", "state"].map((name) => `event: ${name}\\ndata: {}\\n\\n`);
      window.fetch = async () => new Response(events.join(""));
      import("/page/events.js").then(({ follow }) => {
        const stop = follow("demo", () => { stop(); done(links); }, (link) => links.push(link));
      });"""
    links = modules.driver.execute_async_script(script)
    assert links == ["The model is being loaded.", "live"]


PROMPT = {"tokens": 64, "model": 64}, {"tokens": 36, "model": 64}
READ = {"prompt": 100, "cached": 0, "chunks": PROMPT, "isRead": True, "stored": 103}
SCENES = [
    (READ, "not performed here, the models share these tensors"),
    (READ | {"copied": 800}, "copy_kvcache(): 800 bytes copied"),
    (READ | {"copied": 288}, "288 bytes copied; the models share the other rows"),
    (READ | {"cached": 64, "chunks": PROMPT[1:]}, "not performed here"),
    (READ | {"isRead": False, "stored": 64, "chunks": PROMPT[:1]}, "needed only if"),
    (READ | {"prompt": 1, "chunks": [], "stored": 3}, "not performed, prefill has no rows"),
    (READ | {"prompt": 0, "chunks": [], "stored": 0, "isRead": False}, "needed only if"),
]
"""Conversations, and what their pictures say of the copy; a row has 8 bytes."""


def test_the_steps_count_all_rows_and_say_what_becomes_of_the_copy(modules: Page) -> None:
    for given, copy in SCENES:
        scene = {"copied": 0, "bytesPerToken": 8} | given
        steps = modules.call("pictures/steps.js", "stepsOf", scene)
        ends = [0, *(step["to"] for step in steps)]
        assert [step["from"] for step in steps] == ends[:-1]
        assert ends[-1] == scene["stored"]
        rows = [step for step in steps if step["kind"] == "generate"]
        assert all(step["to"] == step["from"] + 1 for step in rows)
        lines: list[Any] = []
        for index in range(-1, len(steps)):
            lines = modules.call("pictures/steps.js", "linesAt", scene, steps, index)
            now = [line["stored"] for line in lines if line["isNow"]]
            assert now == ([] if index < 0 else [steps[index]["to"]])
        assert copy in lines[1]["text"]


def test_memory_that_comes_with_the_first_request_is_named_before_it(modules: Page) -> None:
    programs = {"name": "a", "kind": "programs", "bytes": 5, "address": None, "slot": None}
    scene = {"lanes": [], "variants": [], "capacity": 8, "memory": [programs], "isFirst": True}
    script = """
      const [scene, done] = arguments;
      import("/page/pictures/memory.js").then(({ draw }) => done(draw(scene, 300).facts));"""
    facts = dict(modules.driver.execute_async_script(script, scene))
    assert facts["m-weights"] == "weights: none before the first request"
    assert facts["m-kv_cache"] == "KV cache: none before the first request"
    later = dict(modules.driver.execute_async_script(script, scene | {"isFirst": False}))
    assert later.keys() == {"m-programs"}
