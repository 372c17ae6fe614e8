// Variant selection: generate models that read more or fewer rows of one buffer; the smallest sufficient one runs.

import { count, counted, percent } from "../format.js";
import { svg } from "../dom.js";
import { box, label, labelNear } from "./shapes.js";

const NAME = 44; // px for a variant's capacity
const TEXT = 72; // px for how much of it is needed
const ROW = 26;
const BAR = 18;
const TOP = 24;

/** Draw a Scene. */
export function draw(scene, width) {
  const room = width - NAME - TEXT;
  const most = Math.max(...scene.variants.map((variant) => variant.capacity), scene.needed);
  const x = (rows) => NAME + (rows / most) * room;
  const bottom = TOP + ROW * scene.variants.length;
  const idle = scene.phase === "free";
  return {
    height: bottom + 4,
    nodes: [
      ...scene.variants.flatMap((variant, index) => bar(scene, variant, TOP + ROW * index, x)),
      ...scene.variants.map((variant, index) => {
        const kind = variant.chosen ? "strong" : "quiet";
        return label(width, TOP + ROW * index + 13, idle ? "" : remark(scene, variant), "end", kind);
      }),
      ...(idle ? [] : need(scene, x(scene.needed), bottom, width)),
    ],
    facts: facts(scene),
  };
}

function bar(scene, { capacity, chosen }, y, x) {
  const [start, end] = [x(0), x(capacity)];
  const stored = x(Math.min(scene.stored, capacity));
  const needed = x(Math.min(scene.needed, capacity));
  const parts = chosen
    ? [
        box(start, y, stored - start, BAR, "prompt"),
        box(stored, y, needed - stored, BAR, "reserved"),
        box(needed, y, end - needed, BAR, "free"),
      ]
    : [];
  return [
    label(NAME - 8, y + 13, count(capacity), "end", chosen ? "strong" : "quiet"),
    ...parts,
    box(start, y, end - start, BAR, chosen ? "chosen" : "outline"),
  ];
}

function need(scene, at, bottom, width) {
  return [
    svg("line", { x1: at, x2: at, y1: TOP - 5, y2: bottom - 4, class: "cursor" }),
    labelNear(at, 14, width, `needed ${count(scene.needed)}`, "strong"),
  ];
}

function remark(scene, { capacity, chosen }) {
  if (capacity < scene.needed && !chosen) return "too small";
  return `${percent(Math.min(scene.needed / capacity, 1))} used`;
}

function facts(scene) {
  if (scene.phase === "rejected") return [[null, "no variant runs, for the prompt does not fit"]];
  const chosen = scene.variants.find((variant) => variant.chosen);
  if (chosen === undefined) return [[null, "no variant runs yet"]];
  const used = Math.min(scene.needed / chosen.capacity, 1);
  const reason = scene.reason === "" ? [] : [[null, scene.reason]];
  return [
    ["prompt", `stored so far: ${counted(scene.stored, "row")}`],
    ["reserved", `still reserved: ${counted(Math.max(scene.needed - scene.stored, 0), "row")}`],
    ["free", `waste: ${counted(Math.max(chosen.capacity - scene.needed, 0), "row")} read in vain`],
    [null, `utilisation ${percent(used)}, waste ${percent(1 - used)}`],
    ...reason,
  ];
}
