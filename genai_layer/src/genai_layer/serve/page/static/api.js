// Requests to the server that sent this page. Paths are relative, so a reverse proxy may add a prefix.

let key = "";
const waiting = new Set();

/** An error whose message is a sentence for the person at the page. */
export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Use an API key from now on. It stays in memory: a reload asks again. */
export function setKey(value) {
  key = value;
  for (const retry of waiting) retry();
  waiting.clear();
}

/** Resolve when the next API key is entered. */
export function nextKey() {
  return new Promise((resolve) => waiting.add(resolve));
}

/** Return the response of a request; body: an object, sent as JSON. Throws ServerError, or AbortError. */
export async function request(path, { body, signal } = {}) {
  const headers = {};
  if (key !== "") headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer; check that npu-serve is running, then try again.", 0);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Return the JSON of a GET request. Throws as `request` does. */
export async function get(path, signal) {
  return (await request(path, { signal })).json();
}

async function refusal(response) {
  if (response.status === 401) {
    document.dispatchEvent(new CustomEvent("key-needed", { detail: { refused: key !== "" } }));
    return new ServerError("The server asks for an API key; enter it above.", 401);
  }
  const text = await response.text();
  let message = `The server answered with status ${response.status}.`;
  try {
    message = JSON.parse(text).error.message ?? message;
  } catch {
    // not OpenAI's error format, e.g. a proxy's page: the status has to do
  }
  const seconds = response.headers.get("Retry-After");
  if (seconds !== null) message += ` It asks to wait ${seconds} s.`;
  return new ServerError(message, response.status);
}
