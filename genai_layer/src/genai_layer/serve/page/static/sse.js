// Server-sent events of a response. EventSource cannot send an API key or a POST body, so both streams of the
// page (answers and the device's states) are read with fetch.

import { ServerError } from "./api.js";

/** Yield {event, data} of each event of a response's body, until it ends. Throws ServerError if the connection breaks. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await read(reader);
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const found = parse(block);
        if (found !== null) yield found;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // a reader that stops early closes the connection
  }
}

async function read(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The connection to the server broke; try again.", 0);
  }
}

function parse(block) {
  let event = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}
