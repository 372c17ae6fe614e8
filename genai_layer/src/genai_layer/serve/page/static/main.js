// The page's beginning: colours, API key, models, then the chat and the pictures.

import { get, nextKey, setKey } from "./api.js";
import { Chat } from "./chat.js";
import { byId, html, setText } from "./dom.js";
import { Panel } from "./panel.js";
import * as theme from "./theme.js";

const RETRY_MS = 3000;

theme.start();
askForKeys();
const panel = new Panel();
new Chat(
  () => byId("model").value,
  (request) => panel.prefer(request),
);
byId("model").addEventListener("change", () => panel.use(byId("model").value));
loadModels();

async function loadModels() {
  for (;;) {
    try {
      showModels((await get("v1/models")).data);
      return;
    } catch (error) {
      setText(byId("link"), error.message);
      await (error.status === 401 ? nextKey() : new Promise((resolve) => setTimeout(resolve, RETRY_MS)));
    }
  }
}

function showModels(models) {
  const names = models.filter((model) => (model.kind ?? "text") === "text").map((model) => model.id);
  byId("model").replaceChildren(...names.map((name) => html("option", { value: name }, name)));
  if (names.length === 0) setText(byId("link"), "The server has no language model; start npu-serve with one.");
  else panel.use(byId("model").value);
}

function askForKeys() {
  document.addEventListener("key-needed", (event) => {
    const form = byId("key-form");
    setText(byId("key-note"), event.detail.refused ? "The server refused this key; check it and try again." : "");
    if (!form.hidden) return;
    form.hidden = false;
    byId("key").focus();
  });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("key-form").hidden = true;
    setKey(byId("key").value);
    byId("key").value = "";
    byId("question").focus();
  });
}
