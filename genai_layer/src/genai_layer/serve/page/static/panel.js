// The right side of the page: takes states and plans, and gives each picture its scene.

import { byId, setText } from "./dom.js";
import { follow } from "./events.js";
import { counted } from "./format.js";
import * as now from "./now.js";
import { draw as drawDataFlow } from "./pictures/data_flow.js";
import { Picture } from "./pictures/frame.js";
import { draw as drawGrowth } from "./pictures/kv_growth.js";
import { draw as drawMemory } from "./pictures/memory.js";
import { draw as drawVariants } from "./pictures/variants.js";
import { busySlot, ofPlan, ofSlot } from "./scene.js";
import { showLimit } from "./settings.js";
import { Stepper } from "./stepper.js";
import { draw as drawTimeline } from "./timeline.js";
import { WhatIf } from "./what_if.js";

const SHOWN = {
  free: "No request yet: ask something.",
  prefilling: "reads its prompt.",
  generating: "generates.",
  finished: "has finished; these were its last rows.",
};

export class Panel {
  #stop = () => {};
  #state = null;
  #request = null;
  #stepper = new Stepper(() => this.#dataFlow.redraw());
  #dataFlow = new Picture(byId("data-flow"), (scene, width) => {
    return drawDataFlow(scene, width, (steps) => this.#stepper.choose(steps));
  });
  #pictures = [
    new Picture(byId("kv-growth"), drawGrowth),
    this.#dataFlow,
    new Picture(byId("variants"), drawVariants),
    new Picture(byId("memory"), drawMemory),
  ];
  #timeline = new Picture(byId("timeline"), drawTimeline);
  #whatIf = new WhatIf(
    (plan, answered) => this.#showPlan(plan, answered),
    (problem) => setText(byId("problem"), problem),
  );

  constructor() {
    for (const input of document.getElementsByName("source")) {
      input.addEventListener("change", () => this.#switch());
    }
  }

  /** Show a model from now on. */
  use(model) {
    this.#stop();
    this.#state = null;
    this.#whatIf.use(model);
    this.#stop = follow(model, (state) => this.#take(state), showLink);
  }

  /** Prefer the slot of a request, by its id. */
  prefer(request) {
    this.#request = request;
  }

  #take(state) {
    const first = this.#state === null;
    this.#state = state;
    now.show(state);
    showLimit(state.max_tokens);
    byId("observed").hidden = !state.observable;
    byId("unobservable").hidden = state.observable;
    if (!state.observable) {
      setText(byId("unobservable"), `The pictures need the NPU's runtime; this model runs on ${state.device}.`);
      return;
    }
    this.#timeline.show(state.last_step);
    if (!isWhatIf()) this.#showLive();
    else if (first) this.#whatIf.ask();
  }

  #switch() {
    byId("sliders").hidden = !isWhatIf();
    if (this.#state === null || !this.#state.observable) return;
    if (isWhatIf()) this.#whatIf.ask();
    else this.#showLive();
  }

  #showLive() {
    const { slots, last_ended: ended } = this.#state;
    const busy = busySlot(slots, this.#request);
    const slot = busy ?? ended ?? slots[0];
    const scene = ofSlot(this.#state, slot, busy === null && ended !== null);
    const said = SHOWN[scene.phase];
    setText(byId("shown"), scene.phase === "free" ? said : `The request in slot ${slot.slot} ${said}`);
    this.#showAll(scene);
  }

  #showPlan(plan, answered) {
    if (!isWhatIf() || this.#state === null) return;
    setText(byId("shown"), `If the prompt had ${counted(plan.prompt_tokens, "token")}: a plan of ${counted(plan.static_models, "static model")}.`);
    this.#showAll(ofPlan(plan, answered, this.#state));
  }

  #showAll(scene) {
    for (const picture of this.#pictures) picture.show(scene);
  }
}

function isWhatIf() {
  return byId("source-if").checked;
}

function showLink(text) {
  byId("link").dataset.live = String(text === "live");
  setText(byId("link"), text);
}
