// The frame of a picture: a figure of index.html with a heading, a sentence, room for the drawing and a list of facts.
// The facts are the drawing's text alternative, and its legend.

import { html, svg } from "../dom.js";

/**
 * Keep a figure's drawing up to date.
 *
 * draw(subject, width) returns {height, nodes, facts}: the nodes of an SVG of that size, and facts as [class, text],
 * where the class is that of a shape, or null; and lines of steps (see linesAt) for a figure with a list of them. A subject
 * is a Scene, or a step of the device.
 */
export class Picture {
  #figure;
  #draw;
  #subject = null;
  #pending = false;

  constructor(figure, draw) {
    this.#figure = figure;
    this.#draw = draw;
    new ResizeObserver(() => this.redraw()).observe(figure.querySelector(".drawing"));
  }

  /** Draw a subject at the next frame; null: there is nothing to draw. */
  show(subject) {
    this.#subject = subject;
    this.redraw();
  }

  /** Draw the last subject again at the next frame. */
  redraw() {
    if (this.#pending) return;
    this.#pending = true;
    requestAnimationFrame(() => {
      this.#pending = false;
      this.#render();
    });
  }

  #render() {
    const room = this.#figure.querySelector(".drawing");
    const list = this.#figure.querySelector(".facts");
    const width = room.clientWidth;
    if (this.#subject === null || width === 0) {
      room.replaceChildren();
      list.replaceChildren();
      return;
    }
    const { height, nodes, facts, lines = [] } = this.#draw(this.#subject, width);
    const names = { "aria-labelledby": `${this.#figure.id}-title`, "aria-describedby": `${this.#figure.id}-facts` };
    const size = { viewBox: `0 0 ${width} ${height}`, width, height };
    room.replaceChildren(svg("svg", { role: "img", ...names, ...size }, ...nodes));
    list.replaceChildren(...facts.map(fact));
    this.#figure.querySelector(".steps")?.replaceChildren(...lines.map(line));
  }
}

function line({ code, text, stored, isNow }) {
  const after = stored === null ? "" : `; num_stored_tokens = ${stored}`;
  const state = { "aria-current": isNow ? "step" : null, "data-reached": String(stored !== null) };
  return html("li", state, html("code", {}, code), html("div", {}, text + after));
}

function fact([kind, text]) {
  if (kind === null) return html("li", {}, text);
  const swatch = svg("svg", { class: "swatch", viewBox: "0 0 12 12", "aria-hidden": "true" });
  const fill = kind === "free" ? { fill: "url(#hatch)" } : {};
  swatch.append(svg("rect", { x: 0.5, y: 0.5, width: 11, height: 11, rx: 2, class: kind, ...fill }));
  return html("li", {}, swatch, text);
}
