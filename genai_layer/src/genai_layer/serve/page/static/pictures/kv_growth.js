// KV growth: a buffer of fixed size, in which the write position moves, and the mask of its valid rows.

import { bytes, count, counted } from "../format.js";
import { box, caption, fits, labelNear, label, ticks } from "./shapes.js";
import { svg } from "../dom.js";

const BUFFER = { y: 26, height: 34 };
const MASK = { y: 96, height: 20 };

/** Draw a Scene. */
export function draw(scene, width) {
  const rows = Math.max(scene.capacity, scene.phase === "rejected" ? scene.prompt : 0);
  const x = (row) => (row / rows) * width;
  return {
    height: scene.phase === "rejected" ? 82 : 132,
    nodes: [...buffer(scene, x, width), ...mask(scene, x, width), ...axis(scene, x, width)],
    facts: facts(scene),
  };
}

function parts(scene) {
  if (scene.phase === "rejected") {
    return [
      ["free", 0, scene.capacity, "buffer"],
      ["missing", scene.capacity, scene.prompt, "no room"],
    ];
  }
  const prompt = Math.min(scene.prompt, scene.stored);
  const cached = Math.min(scene.cached, prompt);
  return [
    ["cached", 0, cached, "cached"],
    ["prompt", cached, prompt, "prompt"],
    ["answer", prompt, scene.stored, "answer"],
    ["free", scene.stored, scene.capacity, "free"],
  ];
}

function buffer(scene, x, width) {
  const { y, height } = BUFFER;
  const nodes = [];
  for (const [kind, from, to, name] of parts(scene)) {
    const [left, wide] = [x(from), x(to) - x(from)];
    nodes.push(box(left, y, wide, height, kind));
    nodes.push(caption(left, y, wide, height, `${name} ${count(to - from)}`, `on-${kind}`));
  }
  nodes.push(box(0.5, y, x(scene.capacity) - 1, height, "outline"));
  return [...nodes, ...position(scene, x, width)];
}

function position(scene, x, width) {
  if (scene.phase === "rejected") {
    return [labelNear(x(scene.capacity), 14, width, `the buffer ends at ${count(scene.capacity)}`, "strong")];
  }
  const at = x(scene.stored);
  const [y1, y2] = [BUFFER.y - 4, BUFFER.y + BUFFER.height + 4];
  return [
    svg("line", { x1: at, x2: at, y1, y2, class: "cursor" }),
    labelNear(at, 14, width, `write position ${count(scene.stored)}`, "strong"),
  ];
}

function mask(scene, x, width) {
  if (scene.phase === "rejected") return [];
  const { y, height } = MASK;
  const edge = x(scene.maskOnes);
  const end = x(scene.capacity);
  const ones = fits("1 1 … 1", edge) ? "1 1 … 1" : "1";
  const zeros = fits("0 0 … 0", end - edge) ? "0 0 … 0" : "0";
  return [
    box(0, y, edge, height, "ones"),
    box(0.5, y, end - 1, height, "outline"),
    caption(0, y, edge, height, ones, "on-ones"),
    caption(edge, y, end - edge, height, zeros, "quiet"),
    label(0, y + height + 14, "attention mask", "start", "quiet"),
  ];
}

function axis(scene, x, width) {
  const marks = [[0.5, "0"]];
  if (scene.maxPrompt < scene.capacity) marks.push([x(scene.maxPrompt), count(scene.maxPrompt)]);
  marks.push([Math.min(x(scene.capacity), width - 0.5), count(scene.capacity)]);
  return ticks(BUFFER.y + BUFFER.height, width, marks);
}

function facts(scene) {
  if (scene.phase === "rejected") {
    const missing = scene.prompt - scene.capacity;
    return [
      ["free", `buffer: ${counted(scene.capacity, "row")}`],
      missing > 0
        ? ["missing", `no room for ${counted(missing, "token")} of the prompt`]
        : [null, `the prompt has ${counted(scene.prompt, "token")}, above MAX_PROMPT_LEN ${count(scene.maxPrompt)}`],
    ];
  }
  const prompt = Math.min(scene.prompt, scene.stored);
  const cached = Math.min(scene.cached, prompt);
  const found = [
    ["prompt", `prompt: ${counted(prompt - cached, "row")}`],
    ["answer", `answer: ${counted(scene.stored - prompt, "row")}`],
    ["free", `free: ${counted(scene.capacity - scene.stored, "row")}`],
  ];
  if (cached > 0) found.unshift(["cached", `from the prefix cache: ${counted(cached, "row")}`]);
  const [used, all] = [scene.stored, scene.capacity].map((rows) => bytes(rows * scene.bytesPerToken));
  found.push(["ones", `mask: ${counted(scene.maskOnes, "one")}`], [null, `${used} of ${all} in use`]);
  return found;
}
