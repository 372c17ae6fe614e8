"""The page of npu-serve as a person uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

KEY = "a key of the tests"


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

    def stop_at_the_first_text(self) -> None:
        """Press the button as soon as an answer has text; the driver's own click may be late."""
        self.driver.execute_script(
            """
            const observer = new MutationObserver(() => {
              if (!document.querySelector(".answer .text")?.textContent) return;
              observer.disconnect();
              document.getElementById("send").click();
            });
            observer.observe(document.getElementById("messages"),
                             {childList: true, characterData: true, subtree: true});"""
        )

    def idle(self) -> bool:
        return self.text("send") == "Send"

    def answers(self) -> list[str]:
        return [each.text for each in self.driver.find_elements(By.CSS_SELECTOR, ".answer .text")]

    def plan(self, tokens: int) -> None:
        """Show the plan of a prompt."""
        self.suppose(tokens)
        self.wait(lambda: f"had {tokens:,} token" in self.text("shown"))
        script = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        self.driver.execute_async_script(script)  # then the pictures are drawn

    def suppose(self, tokens: int) -> None:
        """Enter the tokens of a prompt that is planned."""
        if not self.get("sliders").is_displayed():
            self.get("source-if").send_keys(Keys.SPACE)
        field = self.get("if-prompt-number")
        field.send_keys(Keys.CONTROL + "a")
        field.send_keys(str(tokens))

    def steps(self) -> list[str]:
        """Return the lines of the steps from prefill to generate."""
        return [each.text for each in self.driver.find_elements(By.CSS_SELECTOR, ".steps li")]

    def call(self, module: str, function: str, *arguments: object) -> Any:
        """Return the result of a function of one of the page's modules."""
        script = """
          const [module, name, given, done] = arguments;
          import(module).then((found) => done(found[name](...given)));"""
        return self.driver.execute_async_script(script, f"/page/{module}", function, arguments)

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        return self.driver.execute_script(script)
