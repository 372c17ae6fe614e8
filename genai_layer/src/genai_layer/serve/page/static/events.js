// The stream of the device's states: /npu/events, with reconnection.

import { nextKey, request } from "./api.js";
import { events } from "./sse.js";

const FIRST_DELAY_MS = 500;
const LAST_DELAY_MS = 2000;

/**
 * Call onState with each state of a model, and onLink with "live", or with a sentence that says why there is no state.
 * Returns a function that stops.
 */
export function follow(model, onState, onLink) {
  const stop = new AbortController();
  run(model, onState, onLink, stop.signal);
  return () => stop.abort();
}

async function run(model, onState, onLink, signal) {
  let delay = FIRST_DELAY_MS;
  while (!signal.aborted) {
    try {
      const path = `npu/events?model=${encodeURIComponent(model)}`;
      const response = await request(path, { signal });
      for await (const { event, data } of events(response)) {
        delay = FIRST_DELAY_MS;
        if (signal.aborted) return;
        onLink(event === "loading" ? "The model is being loaded." : "live");
        if (event === "state") onState(JSON.parse(data));
      }
    } catch (error) {
      if (signal.aborted) return;
      onLink(error.message);
      if (error.status === 401) {
        await nextKey();
        continue;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, delay));
    delay = Math.min(2 * delay, LAST_DELAY_MS);
  }
}
