"""The page of npu-serve in headless Chromium, with the real server and the demo model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from tests.stack.serve.conftest import Serve

ROOT = Path(__file__).resolve().parents[3]
KEY = "a key of the tests"
ENDLESS = "x" * 100
"""Question that the demo model answers without an end."""
ATTACKS = r"""
<script>document.title = "attacked"</script> <img src=x onerror='document.title="attacked"'>
[link](javascript:document.title="attacked") [data](data:text/html,<script>1</script>)
![image](http://192.0.2.1/x.png) <svg onload=alert(1)> <a href="javascript:1">a</a>
<form action=/><button>b</button></form> <style>*{display:none}</style> `<b>code</b>`
"""


class Page:
    """The page in a browser, and what a person does with it."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver, self._url = driver, url

    def open(self) -> None:
        """Open the page as in a new tab, and enter the API key that it asks for."""
        self.driver.get(self._url)
        self.driver.execute_script("sessionStorage.clear(); localStorage.clear()")
        self.driver.refresh()
        self.wait(lambda: self.get("key-form").is_displayed())
        assert self.focused() == "key"
        self.press(KEY + Keys.ENTER)
        self.wait(lambda: self.text("link") == "live")
        self.driver.get_log("browser")  # the 401 above
        self.wait(lambda: self.text("kv-growth-facts") != "")

    def get(self, name: str) -> Any:
        return self.driver.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return self.get(name).text

    def focused(self) -> str:
        return self.driver.switch_to.active_element.get_attribute("id") or ""

    def press(self, keys: str) -> None:
        """Press keys in the element that has the focus."""
        self.driver.switch_to.active_element.send_keys(keys)

    def wait(self, condition: Callable[[], object]) -> None:
        WebDriverWait(self.driver, 60, 0.05).until(lambda _: condition())

    def ask(self, question: str) -> None:
        self.get("question").send_keys(question + Keys.ENTER)

    def idle(self) -> bool:
        return self.text("send") == "Send"

    def answers(self) -> list[str]:
        return [each.text for each in self.driver.find_elements(By.CSS_SELECTOR, ".answer .text")]

    def plan(self, tokens: int) -> None:
        """Show the plan of a prompt."""
        if not self.get("sliders").is_displayed():
            self.get("source-if").send_keys(Keys.SPACE)
        field = self.get("if-prompt-number")
        field.send_keys(Keys.CONTROL + "a")
        field.send_keys(str(tokens))
        self.wait(lambda: f"{tokens:,} tokens" in self.text("shown"))

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        return self.driver.execute_script(script)


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
    with serve_demo("--api-key", KEY) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Page]:
    """The page, opened, at the size of a desk's screen; in the end nothing may be in its log."""
    browser.set_screen(browser.driver, 1440, 900)
    page = Page(browser.driver, url)
    page.open()
    yield page
    assert page.driver.get_log("browser") == []


def test_an_answer_streams_and_the_pictures_show_its_rows(page: Page) -> None:
    page.ask("What is an NPU?")
    page.wait(lambda: page.answers() and page.idle())
    (answer,) = page.answers()
    assert "neural" in answer
    assert re.search(r"\d+ tokens in, \d+ out", page.text("messages"))
    page.wait(lambda: "finished" in page.text("shown"))
    assert re.search(r"answer: [1-9]\d* rows", page.text("kv-growth-facts"))
    assert "copied here: 0 bytes" in page.text("data-flow-facts")
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
    page.get("max-tokens").send_keys("1000")
    page.ask(ENDLESS)
    page.wait(lambda: any(page.answers()))
    assert not page.idle()
    page.get("send").click()
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
    page.wait(lambda: page.text("problem") == "")
    assert "write position 3,000" in page.text("kv-growth")
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
    assert (roles.count("slider"), roles.count("radio")) == (4, 2)
    images = [node for role, _, node in found if role == "image"]
    assert len(images) == 5
    assert all(node["description"]["value"] for node in images)
    unnamed = [role for role, name, _ in found if not name.strip()]
    assert set(unnamed) <= {"figure", "group"}


@pytest.mark.parametrize("width", [320, 768])
def test_a_narrow_window_does_not_scroll_sideways(page: Page, browser: Any, width: int) -> None:
    browser.set_screen(page.driver, width, 640)
    page.ask("What is an NPU?")
    page.wait(lambda: page.answers() and page.idle())
    assert page.overflow() == 0
    page.plan(3000)
    assert page.overflow() == 0


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
