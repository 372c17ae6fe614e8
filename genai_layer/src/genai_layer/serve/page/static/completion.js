// A streamed answer of /v1/chat/completions.

import { request, ServerError } from "./api.js";
import { events } from "./sse.js";

/**
 * Yield {id, text, finish, usage} of each chunk of an answer; finish is "stop", "length" … in the last one.
 * The first one has the id alone, before the prompt is read.
 * Throws ServerError, also for an error in the middle of the stream, or AbortError.
 */
export async function* complete(model, messages, settings, signal) {
  const body = {
    model,
    messages,
    temperature: settings.temperature,
    max_completion_tokens: settings.maxTokens ?? undefined, // left out, the server's limit holds
    stream: true,
    stream_options: { include_usage: true },
  };
  const response = await request("v1/chat/completions", { body, signal });
  yield { id: response.headers.get("x-reply-id"), text: "", finish: null, usage: null };
  for await (const { data } of events(response)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ServerError(chunk.error.message, response.status);
    const choice = chunk.choices[0];
    yield {
      id: chunk.id,
      text: choice?.delta?.content ?? "",
      finish: choice?.finish_reason ?? null,
      usage: chunk.usage ?? null,
    };
  }
  throw new ServerError("The connection ended before the answer did; try again.", 0);
}
