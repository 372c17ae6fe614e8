// The sliders of "what if": they ask the server what it would do with another prompt or other lengths.

import { get } from "./api.js";
import { byId, setText } from "./dom.js";
import { count } from "./format.js";

/** Ask for plans of a model while `open`; onPlan(plan, answered) receives each, onProblem a sentence or "". */
export class WhatIf {
  #model = null;
  #asked = null;
  #plan = null;
  #changed = new Set();
  #onPlan;
  #onProblem;

  constructor(onPlan, onProblem) {
    this.#onPlan = onPlan;
    this.#onProblem = onProblem;
    byId("if-prompt").addEventListener("input", () => {
      byId("if-prompt-number").value = byId("if-prompt").value;
      this.ask();
    });
    byId("if-prompt-number").addEventListener("input", () => {
      byId("if-prompt").value = byId("if-prompt-number").value; // the slider stops at its own ends
      this.ask();
    });
    byId("if-answer").addEventListener("input", () => this.#publish());
    for (const id of ["if-max-prompt", "if-min-response"]) {
      byId(id).addEventListener("input", () => {
        this.#changed.add(id);
        this.ask();
      });
    }
  }

  /** Use a model, with its own lengths. */
  use(model) {
    this.#model = model;
    this.#changed.clear();
  }

  /** Ask for the plan of what the controls show; only the latest answer counts. */
  async ask() {
    this.#asked?.abort();
    const prompt = byId("if-prompt-number");
    if (!prompt.checkValidity()) {
      this.#onProblem(`Prompt, tokens: ${prompt.validationMessage}`);
      return;
    }
    const asked = new AbortController();
    this.#asked = asked;
    try {
      this.#plan = await get(`npu/plan?${this.#query()}`, asked.signal);
      this.#onProblem(this.#plan.fits ? "" : this.#plan.reason);
      this.#publish();
    } catch (error) {
      if (error.name !== "AbortError") this.#onProblem(error.message);
    }
  }

  #query() {
    const query = new URLSearchParams({ model: this.#model, prompt_tokens: byId("if-prompt-number").valueAsNumber });
    if (this.#changed.has("if-max-prompt")) query.set("max_prompt_len", byId("if-max-prompt").value);
    if (this.#changed.has("if-min-response")) query.set("min_response_len", byId("if-min-response").value);
    return query;
  }

  #publish() {
    const plan = this.#plan;
    if (plan === null) return;
    const answer = byId("if-answer");
    answer.max = Math.max(0, Math.min(plan.min_response_len, plan.capacity - plan.prompt_tokens));
    if (!this.#changed.has("if-max-prompt")) byId("if-max-prompt").value = plan.max_prompt_len;
    if (!this.#changed.has("if-min-response")) byId("if-min-response").value = plan.min_response_len;
    setText(byId("if-answer-value"), count(answer.value));
    setText(byId("if-max-prompt-value"), count(plan.max_prompt_len));
    setText(byId("if-min-response-value"), count(plan.min_response_len));
    this.#onPlan(plan, Number(answer.value));
  }
}
