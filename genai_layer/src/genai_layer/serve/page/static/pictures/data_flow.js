// Data flow from prefill to generate, at one of its steps: chunks of the prompt, the KV buffer, a copy where there is one.

import { bytes, count, counted } from "../format.js";
import { arrow, box, caption, label } from "./shapes.js";
import { linesAt, stepsOf } from "./steps.js";
import { svg } from "../dom.js";

const CHUNKS = { y: 16, height: 22 };
const MODELS = { y: 58, height: 46 };
const BUFFER = { y: 148, height: 26 };

/** Draw a Scene; choose(count) returns the index of the step to show. */
export function draw(scene, width, choose) {
  const steps = stepsOf(scene);
  const index = choose(steps.length);
  const step = steps[index] ?? { kind: null, from: 0, to: 0 };
  const wide = Math.min(160, width * 0.36);
  const left = { x: 0, width: wide };
  const right = { x: width - wide, width: wide };
  return {
    height: 192,
    nodes: [
      ...chunks(scene, width, step),
      ...model(left, "Prefill", prefillText(scene), step.kind === "prefill"),
      ...model(right, "Generate", generateText(scene), step.kind === "generate"),
      ...transfer(scene, left, right),
      ...arrows(scene, left, right, step),
      ...buffer(scene, width, step.to),
    ],
    facts: facts(scene),
    lines: scene.phase === "rejected" ? [] : linesAt(scene, steps, index),
  };
}

function chunks(scene, width, step) {
  const { y, height } = CHUNKS;
  const total = scene.chunks.reduce((sum, chunk) => sum + chunk.tokens, 0);
  const title = scene.phase === "free" ? "prompt" : `prompt: ${counted(scene.prompt, "token")}${cachedText(scene)}`;
  const nodes = [label(0, 10, title, "start", "quiet")];
  if (total === 0) {
    const kind = scene.phase === "rejected" ? "missing" : "outline";
    return [...nodes, box(0.5, y, width - 1, height, kind)];
  }
  let [x, end] = [0, scene.cached];
  for (const { tokens } of scene.chunks) {
    const wide = (tokens / total) * width;
    end += tokens;
    const kind = end <= step.to ? "prompt" : "reserved";
    nodes.push(box(x, y, Math.max(wide - 2, 1), height, kind, 2));
    nodes.push(caption(x, y, wide - 2, height, count(tokens), `on-${kind}`));
    x += wide;
  }
  return nodes;
}

function cachedText(scene) {
  return scene.cached > 0 ? `, ${count(scene.cached)} of them cached` : "";
}

function model({ x, width }, name, text, active) {
  const { y, height } = MODELS;
  return [
    svg("rect", { x: x + 1, y, width: width - 2, height, rx: 6, class: active ? "active" : "block" }),
    label(x + width / 2, y + 19, name, "middle", "strong"),
    label(x + width / 2, y + 36, text, "middle", "quiet"),
  ];
}

function transfer(scene, left, right) {
  const y = MODELS.y + MODELS.height / 2;
  const [from, to] = [left.x + left.width + 6, right.x - 6];
  const copies = scene.copied > 0;
  return [
    ...arrow(from, y, to, y, copies ? "flow" : "ghost"),
    label((from + to) / 2, y - 8, copies ? bytes(scene.copied) : scene.isRead ? "no copy" : "", "middle", "strong"),
  ];
}

function arrows(scene, left, right, step) {
  const from = MODELS.y + MODELS.height + 2;
  const chunk = CHUNKS.y + CHUNKS.height;
  const [write, read] = [left.x + left.width / 2, right.x + right.width / 2];
  const present = scene.chunks.length > 0 && step.kind !== "cached" ? Math.min(step.to, scene.prompt) : 0;
  const past = step.kind === "generate" ? step.from : 0;
  return [
    ...arrow(write, chunk + 2, write, MODELS.y - 2, scene.chunks.length > 0 ? "flow" : "ghost"),
    ...arrow(write, from, write, BUFFER.y - 3, present > 0 ? "flow" : "ghost"),
    ...arrow(read, BUFFER.y - 3, read, from + 1, past > 0 ? "flow" : "ghost"),
    label(write + 10, from + 14, present > 0 ? `writes present[0:${present}]` : "writes", "start", "quiet"),
    label(read - 10, from + 32, past > 0 ? `reads past[0:${past}]` : "reads", "end", "quiet"),
  ];
}

function buffer(scene, width, stored) {
  const { y, height } = BUFFER;
  const x = (row) => (row / scene.capacity) * width;
  const prompt = Math.min(scene.prompt, stored);
  return [
    box(0, y, width, height, "free"),
    box(0, y, x(prompt), height, "prompt"),
    box(x(prompt), y, x(stored) - x(prompt), height, "answer"),
    box(0.5, y, width - 1, height, "outline"),
    label(0, y + height + 14, `num_stored_tokens ${count(stored)} of ${count(scene.capacity)}`, "start", "strong"),
  ];
}

function prefillText(scene) {
  const used = [...new Set(scene.chunks.map((chunk) => chunk.model))];
  if (used.length === 0) return `${Math.max(...scene.prefillModels)} tokens`;
  return used.length > 2 ? `${used.length} models` : `${used.map(count).join(" + ")} tokens`;
}

function generateText(scene) {
  const chosen = scene.variants.find((variant) => variant.chosen);
  return chosen === undefined ? "1 token" : `reads ${counted(chosen.capacity, "row")}`;
}

function facts(scene) {
  if (scene.phase === "rejected") return [[null, "the prompt does not fit, so nothing is read"]];
  if (scene.phase === "free") return [[null, "no prompt yet"]];
  const chunkText = scene.chunks.map(({ tokens, model }) => `${count(tokens)} in prefill ${count(model)}`).join(", ");
  const found = [];
  if (chunkText !== "") found.push(["prompt", `${counted(scene.chunks.length, "chunk")}: ${chunkText}`]);
  found.push([null, scene.copied > 0 ? `copied here: ${bytes(scene.copied)}` : "copied here: 0 bytes"]);
  found.push([null, `the real NPUW would copy ${bytes(scene.copiedByNpuw)}`]);
  return found;
}
