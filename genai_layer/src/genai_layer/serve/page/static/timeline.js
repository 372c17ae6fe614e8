// The device's last step as a timeline: when each engine worked, in modelled time.

import { count, counted, milliseconds, percent } from "./format.js";
import { svg } from "./dom.js";
import { label, ticks } from "./pictures/shapes.js";

const NAME = 76;
const SHARE = 44;
const ROW = { step: 20, height: 13 };
const KINDS = { prefill: "reads a prompt", generate: "generates", both: "reads a prompt and generates" };

/** Draw a State's last_step. */
export function draw(step, width) {
  if (step.device_us === null) return { height: 0, nodes: [], facts: facts(step) };
  const room = width - NAME - SHARE;
  const bottom = ROW.step * step.engines.length;
  return {
    height: bottom + 26,
    nodes: [
      ...step.engines.flatMap((engine, index) => row(engine, step, ROW.step * index, room, width)),
      svg("g", { transform: `translate(${NAME} 0)` }, ...axis(step, bottom, room)),
    ],
    facts: facts(step),
  };
}

function row(engine, step, y, room, width) {
  const x = (us) => NAME + (us / step.device_us) * room;
  const path = engine.spans
    .map(({ begin_us: begin, end_us: end }) => {
      const wide = Math.max(x(end) - x(begin), 0.5).toFixed(1);
      return `M${x(begin).toFixed(1)} ${y + 2}h${wide}v${ROW.height}h-${wide}z`;
    })
    .join("");
  return [
    label(0, y + 13, engine.engine),
    svg("rect", { x: NAME, y: y + 2, width: room, height: ROW.height, class: "lane" }),
    svg("path", { d: path, class: "prompt" }),
    label(width, y + 13, percent(engine.busy_us / step.device_us), "end", "quiet"),
  ];
}

function axis(step, y, room) {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    return [part * room, part === 0 ? "0" : milliseconds((part * step.device_us) / 1000)];
  });
  return ticks(y, room, marks);
}

function facts(step) {
  const tokens = `${counted(step.read_tokens, "token")} read, ${count(step.generated)} generated`;
  const shared = step.slots > 1 ? [[null, `one program generates for ${count(step.slots)} slots`]] : [];
  return [
    [null, `step ${count(step.number)} ${KINDS[step.kind]}: ${tokens}`],
    ...shared,
    [null, `programs: ${step.programs.join(", ") || "none"}`],
    [null, step.device_us === null ? "the device has no timelines" : `device ${milliseconds(step.device_us / 1000)} (modelled)`],
    [null, `host ${milliseconds(step.host_ms)} (measured)`],
  ];
}
