// The slider of a picture's steps: it follows the newest step until it is moved back.

import { byId, setText } from "./dom.js";
import { count } from "./format.js";

export class Stepper {
  #slider = byId("step");

  /** onMove is called when a person moves the slider. */
  constructor(onMove) {
    this.#slider.addEventListener("input", onMove);
  }

  /** Return the index of the step to show, of so many; -1 if there is none. */
  choose(steps) {
    const slider = this.#slider;
    const follows = slider.value === slider.max;
    slider.max = Math.max(steps - 1, 0);
    if (follows) slider.value = slider.max;
    const text = steps === 0 ? "none" : `${count(Number(slider.value) + 1)} of ${count(steps)}`;
    slider.setAttribute("aria-valuetext", text);
    setText(byId("step-value"), text);
    return Math.min(Number(slider.value), steps - 1);
  }
}
