// The settings of the chat. An answer without a length of its own may have as many tokens as the server admits.

import { byId } from "./dom.js";
import { count } from "./format.js";

/** Return what is chosen; maxTokens is null if its field is empty. */
export function chosen() {
  const tokens = byId("max-tokens").value;
  return { temperature: Number(byId("temperature").value), maxTokens: tokens === "" ? null : Number(tokens) };
}

/** Return whether all fields are valid; the first that is not says why. */
export function areValid() {
  const wrong = [byId("temperature"), byId("max-tokens")].find((field) => !field.checkValidity());
  if (wrong === undefined) return true;
  byId("settings").open = true;
  wrong.reportValidity();
  return false;
}

/** Show the tokens that the server admits in an answer. */
export function showLimit(tokens) {
  byId("max-tokens").max = tokens;
  byId("max-tokens").placeholder = `${count(tokens)}, the server's limit`;
}
