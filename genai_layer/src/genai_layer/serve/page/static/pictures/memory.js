// Memory layout: what lies in device memory, and how much of each KV buffer is in use.

import { bytes, count, percent } from "../format.js";
import { svg } from "../dom.js";
import { box, caption, label } from "./shapes.js";

const KINDS = {
  weights: "weights",
  kv_cache: "KV cache",
  prefix_cache: "prefix cache",
  programs: "programs",
  adapters: "adapters",
};
const FROM_FIRST_REQUEST = ["weights", "kv_cache"];
const TOTAL = { y: 18, height: 28 };
const LANE = { top: 76, height: 14, step: 24 };
const NAME = 52;
const ADDRESS = 96;

/** Draw a Scene. */
export function draw(scene, width) {
  const { lanes } = scene;
  return {
    height: LANE.top + LANE.step * lanes.length + (lanes.length > 0 ? 14 : 0),
    nodes: [
      ...total(scene, width),
      ...(lanes.length > 0 ? [label(0, LANE.top - 10, "KV buffer of each slot in use so far", "start", "quiet")] : []),
      ...lanes.flatMap((item, index) => lane(item, LANE.top + LANE.step * index, width)),
      ...slices(scene, LANE.top + LANE.step * lanes.length, lanes.length, width),
    ],
    facts: facts(scene),
  };
}

function sizes(scene) {
  return Object.keys(KINDS).map((kind) => {
    const items = scene.memory.filter((item) => item.kind === kind);
    return { kind, items, size: items.reduce((sum, item) => sum + item.bytes, 0) };
  });
}

function total(scene, width) {
  const all = sizes(scene).filter(({ size }) => size > 0);
  const sum = all.reduce((left, { size }) => left + size, 0);
  const nodes = [label(0, 10, `in all ${bytes(sum)}`, "start", "quiet")];
  let x = 0;
  for (const { kind, size } of all) {
    const wide = (size / sum) * width;
    nodes.push(box(x, TOTAL.y, Math.max(wide - 1, 1), TOTAL.height, `m-${kind}`));
    nodes.push(caption(x, TOTAL.y, wide, TOTAL.height, KINDS[kind], `on-m-${kind}`));
    x += wide;
  }
  return nodes;
}

function lane(item, y, width) {
  const room = width - NAME - ADDRESS;
  const used = Math.min(item.used / item.bytes, 1);
  return [
    label(0, y + 11, `slot ${item.slot}`),
    box(NAME, y, room, LANE.height, "free"),
    box(NAME, y, room * used, LANE.height, "prompt"),
    box(NAME, y, room, LANE.height, "outline"),
    label(width, y + 11, item.address === null ? bytes(item.bytes) : hexadecimal(item.address), "end", "quiet mono"),
  ];
}

function slices(scene, y, lanes, width) {
  if (lanes === 0) return [];
  const room = width - NAME - ADDRESS;
  const smaller = scene.variants.filter((variant) => variant.capacity < scene.capacity);
  if (smaller.length === 0) return [];
  const lines = smaller.map(({ capacity }) => {
    const x = NAME + (capacity / scene.capacity) * room;
    return svg("line", { x1: x, x2: x, y1: LANE.top - 3, y2: y - 5, class: "slice" });
  });
  return [...lines, label(NAME, y + 8, "lines: where smaller variants end", "start", "quiet")];
}

function facts(scene) {
  const found = sizes(scene)
    .filter(({ kind, items }) => items.length > 0 || (scene.isFirst && FROM_FIRST_REQUEST.includes(kind)))
    .map(({ kind, items, size }) => {
      return [`m-${kind}`, `${KINDS[kind]}: ${items.length > 0 ? bytes(size) + where(items) : "none before the first request"}`];
    });
  const [used, all] = ["used", "bytes"].map((part) => scene.lanes.reduce((sum, lane) => sum + lane[part], 0));
  if (all > 0) found.push(["prompt", `KV rows in use: ${bytes(used)}, ${percent(used / all)} of their buffers`]);
  return found;
}

function where(items) {
  const addresses = items.map((item) => item.address).filter((address) => address !== null);
  if (addresses.length === 0) return items.length > 1 ? ` in ${count(items.length)} ranges` : "";
  const from = ` from ${hexadecimal(Math.min(...addresses))}`;
  return items.length > 1 ? ` in ${count(items.length)} ranges${from}` : from;
}

function hexadecimal(address) {
  return `0x${address.toString(16)}`;
}
