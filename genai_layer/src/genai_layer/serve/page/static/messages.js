// Messages on the page: a question, an answer that grows, an error.

import { byId, html } from "./dom.js";
import { render } from "./markdown.js";

const REDRAW_MS = 80; // Markdown is parsed again this often while an answer grows

const list = () => byId("messages");

/** Show a question as plain text. */
export function question(text) {
  append(html("div", { class: "message question" }, html("h3", { class: "who" }, "You"), html("p", {}, text)));
}

/** Show an answer; the returned object makes it grow. */
export function answer() {
  const body = html("div", { class: "text" });
  const note = html("p", { class: "note" });
  const message = html("div", { class: "message answer" }, html("h3", { class: "who" }, "Model"), body, note);
  append(message);
  return new Answer(message, body, note);
}

/** Show an error in words, with a button that tries again. */
export function failure(text, onRetry) {
  const retry = html("button", { type: "button" }, "Try again");
  const message = html("div", { class: "message failure", role: "alert" }, html("p", {}, text), retry);
  retry.addEventListener("click", () => {
    message.remove();
    byId("question").focus();
    onRetry();
  });
  append(message);
}

/** Remove all messages. */
export function clear() {
  list().replaceChildren();
}

class Answer {
  #message;
  #body;
  #note;
  #text = "";
  #timer = null;

  constructor(message, body, note) {
    this.#message = message;
    this.#body = body;
    this.#note = note;
  }

  /** Replace the text that has come so far. A screen reader waits until the answer is complete. */
  grow(text) {
    this.#text = text;
    this.#message.classList.add("growing");
    list().setAttribute("aria-busy", "true");
    this.#timer ??= setTimeout(() => this.#draw(), REDRAW_MS);
  }

  /** End the answer; note: how it ended, or "". */
  finish(text, note) {
    this.#text = text;
    clearTimeout(this.#timer);
    this.#draw();
    this.#message.classList.remove("growing");
    list().setAttribute("aria-busy", "false");
    keepingEnd(() => {
      this.#note.append(note);
      if (text !== "" && navigator.clipboard) this.#note.append(copyButton(text));
    });
  }

  /** Take the message away, e.g. because nothing came. */
  remove() {
    clearTimeout(this.#timer);
    this.#message.remove();
    list().setAttribute("aria-busy", "false");
  }

  #draw() {
    this.#timer = null;
    keepingEnd(() => this.#body.replaceChildren(render(this.#text)));
  }
}

function copyButton(text) {
  const button = html("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not allow copying";
    }
  });
  return button;
}

function append(message) {
  list().append(message);
  list().scrollTop = list().scrollHeight;
}

function keepingEnd(change) {
  const box = list();
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  change();
  if (atEnd) box.scrollTop = box.scrollHeight;
}
