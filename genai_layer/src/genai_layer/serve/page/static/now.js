// What the server does now, in numbers: speed of the last answer, queue, and a row for each slot.

import { byId, html, setText } from "./dom.js";
import { bytes, count, counted, milliseconds, rate } from "./format.js";

const PHASES = { free: "free", prefilling: "reads the prompt", generating: "generates" };

/** Show a State. */
export function show(state) {
  const { speed, slots } = state;
  setText(byId("ttft"), milliseconds(speed.ttft_ms));
  setText(byId("tpot"), milliseconds(speed.tpot_ms));
  setText(byId("rate"), rate(speed.tokens_per_s));
  const busy = slots.filter((slot) => slot.phase !== "free").length;
  setText(byId("busy"), slots.length === 0 ? "–" : `${busy} of ${slots.length}`);
  setText(byId("queue"), `${count(state.queue)} of ${count(state.queue_limit)}`);
  const list = byId("slots");
  while (list.children.length > slots.length) list.lastChild.remove();
  while (list.children.length < slots.length) list.append(row());
  slots.forEach((slot, index) => fill(list.children[index], slot, state.kv));
}

function row() {
  return html(
    "li",
    { class: "slot" },
    html("span", { class: "slot-name" }),
    html("meter", { min: 0, value: 0 }),
    html("span", { class: "slot-rows" }),
    html("span", { class: "slot-work" }),
  );
}

function fill(item, slot, kv) {
  const [name, meter, rows, working] = item.children;
  item.dataset.phase = slot.phase;
  setText(name, `Slot ${slot.slot}: ${PHASES[slot.phase]}`);
  meter.max = kv?.capacity ?? 1;
  meter.value = slot.stored_tokens;
  meter.setAttribute("aria-label", `KV rows of slot ${slot.slot}`);
  setText(rows, kv === null ? "" : `${count(slot.stored_tokens)} of ${counted(kv.capacity, "row")}`);
  setText(working, work(slot));
}

function work(slot) {
  if (slot.phase === "free" || slot.variant === null) return "";
  const copy = slot.copied_bytes > 0 ? `${bytes(slot.copied_bytes)} copied` : "nothing copied";
  return `variant ${count(slot.variant)}, ${copy}`;
}
