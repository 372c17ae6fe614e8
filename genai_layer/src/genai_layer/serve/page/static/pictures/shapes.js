// Shapes that the pictures share. Lengths are CSS pixels; colours are classes of pictures.css.

import { svg } from "../dom.js";

const CHARACTER = 6.3; // px of an average character at the pictures' size of type

/** Return whether a text fits into a width. */
export function fits(text, width) {
  return text.length * CHARACTER + 8 <= width;
}

/** Return a rectangle; kind: a class, e.g. "prompt". Nothing is drawn for a width of 0. */
export function box(x, y, width, height, kind, radius = 0) {
  if (width <= 0) return null;
  const hatched = kind === "free" ? { fill: "url(#hatch)" } : {};
  return svg("rect", { x, y, width, height, rx: radius, class: kind, ...hatched });
}

/** Return a text; anchor: "start", "middle" or "end" of x; y: its baseline. */
export function label(x, y, text, anchor = "start", kind = "") {
  return svg("text", { x, y, "text-anchor": anchor, class: kind }, text);
}

/** Return a text in the middle of a box, or null if it does not fit. */
export function caption(x, y, width, height, text, kind = "") {
  return fits(text, width) ? label(x + width / 2, y + height / 2 + 4, text, "middle", kind) : null;
}

/** Return a label whose middle is near x but that stays inside 0…width. */
export function labelNear(x, y, width, text, kind = "") {
  const half = (text.length * CHARACTER) / 2;
  if (x - half < 0) return label(0, y, text, "start", kind);
  if (x + half > width) return label(width, y, text, "end", kind);
  return label(x, y, text, "middle", kind);
}

/** Return a line with an arrowhead at its end, as [line, head]. */
export function arrow(x1, y1, x2, y2, kind) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - 7 * ux, y2 - 7 * uy];
  const corners = [[x2, y2], [bx - 4 * uy, by + 4 * ux], [bx + 4 * uy, by - 4 * ux]];
  return [
    svg("line", { x1, y1, x2: bx, y2: by, class: kind }),
    svg("polygon", { points: corners.map((corner) => corner.join(",")).join(" "), class: `head ${kind}` }),
  ];
}

/** Return ticks of an axis below y: [position, text] each; a text that would touch the next one is left out. */
export function ticks(y, width, marks) {
  const nodes = [];
  let free = Infinity;
  for (const [x, text] of [...marks].reverse()) {
    nodes.push(svg("line", { x1: x, y1: y, x2: x, y2: y + 5, class: "tick" }));
    const half = (text.length * CHARACTER) / 2;
    const end = x + half > width ? width : Math.max(x + half, 2 * half);
    if (end > free) continue;
    nodes.push(labelNear(x, y + 17, width, text, "quiet"));
    free = end - 2 * half - 8;
  }
  return nodes;
}
