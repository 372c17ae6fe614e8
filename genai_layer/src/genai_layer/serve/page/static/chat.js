// The chat: sends the conversation, shows the answer while it comes, stops it.

import { complete } from "./completion.js";
import { byId } from "./dom.js";
import { count, counted } from "./format.js";
import { History } from "./history.js";
import * as messages from "./messages.js";
import * as settings from "./settings.js";

/** The chat with the model that `model()` names; onRequest receives the id of each request. */
export class Chat {
  #history = new History();
  #running = null;
  #model;
  #onRequest;

  constructor(model, onRequest) {
    this.#model = model;
    this.#onRequest = onRequest;
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    byId("question").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (this.#running === null) this.#send();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#running?.abort();
    });
    byId("new-chat").addEventListener("click", () => this.#restart());
    for (const button of byId("welcome").querySelectorAll("button")) {
      button.addEventListener("click", () => {
        byId("question").value = button.textContent;
        byId("question").focus();
        this.#send();
      });
    }
    this.#showHistory();
  }

  #submit(event) {
    event.preventDefault();
    if (this.#running === null) this.#send();
    else this.#running.abort();
  }

  #send() {
    const field = byId("question");
    const text = field.value.trim();
    if (text === "" || this.#model() === "" || !settings.areValid()) return;
    field.value = "";
    this.#history.ask(text);
    messages.question(text);
    this.#answer();
  }

  async #answer() {
    const running = new AbortController();
    this.#setRunning(running);
    const shown = messages.answer();
    shown.grow("");
    const chosen = settings.chosen();
    let [text, finish, usage] = ["", null, null];
    try {
      const prompt = this.#history.prompt(byId("system").value.trim());
      for await (const chunk of complete(this.#model(), prompt, chosen, running.signal)) {
        this.#onRequest(chunk.id);
        text += chunk.text;
        finish = chunk.finish ?? finish;
        usage = chunk.usage ?? usage;
        shown.grow(text);
      }
      this.#end(shown, text, ending(finish, usage, chosen.maxTokens));
    } catch (error) {
      if (this.#running !== running) shown.remove(); // a new chat began
      else if (running.signal.aborted) this.#end(shown, text, "Stopped.");
      else this.#fail(shown, text, error.message);
    } finally {
      if (this.#running === running) this.#setRunning(null);
    }
  }

  #end(shown, text, note) {
    shown.finish(text, note);
    if (text !== "") this.#history.answer(text, note);
  }

  #fail(shown, text, message) {
    if (text === "") shown.remove();
    else shown.finish(text, "Not complete.");
    messages.failure(message, () => this.#answer());
  }

  #restart() {
    const running = this.#running;
    this.#history.clear();
    messages.clear();
    this.#setRunning(null);
    running?.abort();
    byId("question").focus();
  }

  #setRunning(running) {
    this.#running = running;
    byId("send").textContent = running === null ? "Send" : "Stop";
    byId("welcome").hidden = this.#history.messages.length > 0;
  }

  #showHistory() {
    for (const { role, content, note } of this.#history.messages) {
      if (role === "user") messages.question(content);
      else messages.answer().finish(content, note ?? "");
    }
    this.#setRunning(null);
  }
}

function ending(finish, usage, maxTokens) {
  const read = usage === null ? "" : `${counted(usage.prompt_tokens, "token")} in, ${count(usage.completion_tokens)} out. `;
  if (finish !== "length") return read;
  const isOwn = maxTokens !== null && usage?.completion_tokens === maxTokens;
  if (isOwn) return `${read}Ended at “Max tokens”; raise it for more.`;
  return `${read}Ended at a limit of the server: --max-tokens, or a full KV cache.`;
}
