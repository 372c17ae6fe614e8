// The conversation of this browser tab. It survives a reload, and ends with the tab; the server stores none.

const NAME = "conversation";

/** Messages {role, content, note?}, in order. */
export class History {
  messages = read();

  /** Append a question; it replaces one that was never answered, e.g. because it was too long. */
  ask(content) {
    if (this.messages.at(-1)?.role === "user") this.messages.pop();
    this.messages.push({ role: "user", content });
    this.#save();
  }

  /** Append the answer to the last question; note: how it ended, for people. */
  answer(content, note) {
    this.messages.push({ role: "assistant", content, note });
    this.#save();
  }

  clear() {
    this.messages = [];
    this.#save();
  }

  #save() {
    try {
      sessionStorage.setItem(NAME, JSON.stringify(this.messages));
    } catch {
      // storage is off or full: the conversation lasts until a reload
    }
  }

  /** Return the messages as the server expects them, after a system message if there is one. */
  prompt(system) {
    const said = this.messages.map(({ role, content }) => ({ role, content }));
    return system === "" ? said : [{ role: "system", content: system }, ...said];
  }
}

function read() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(NAME) ?? "[]");
    return Array.isArray(stored) ? stored.filter((each) => typeof each?.content === "string") : [];
  } catch {
    return [];
  }
}
