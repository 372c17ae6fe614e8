// Steps from prefill to generate, under NPUW's names: the prompt's rows, their copy, then one row for each token. The copy
// is a step here, too: it is marked as not performed where prefill writes to the tensor that generate reads.

import { bytes, count } from "../format.js";

/**
 * @typedef {object} Step
 * @property {"cached"|"prefill"|"copy"|"generate"} kind
 * @property {number} from             num_stored_tokens before the step
 * @property {number} to               num_stored_tokens after the step
 */

/** Return the steps of a Scene so far, in order. */
export function stepsOf(scene) {
  const steps = [];
  let stored = 0;
  const add = (kind, rows) => {
    steps.push({ kind, from: stored, to: stored + rows });
    stored += rows;
  };
  if (scene.cached > 0) add("cached", scene.cached);
  for (const { tokens } of scene.chunks) add("prefill", tokens);
  if (scene.isRead && steps.length > 0) add("copy", 0);
  while (scene.isRead && stored < scene.stored) add("generate", 1);
  return steps;
}

const LINES = [
  { kinds: ["cached", "prefill"], code: readCode, text: readText },
  { kinds: ["copy"], code: copyCode, text: copyText },
  { kinds: ["generate"], code: rowCode, text: rowText },
];

/**
 * Return a line for each of prefill, copy and generate: its latest step up to an index, in code and in words, and
 * num_stored_tokens after it (null before it is reached).
 */
export function linesAt(scene, steps, index) {
  return LINES.map(({ kinds, code, text }) => {
    const found = steps.findLastIndex(({ kind }, each) => each <= index && kinds.includes(kind));
    const step = steps[found] ?? null;
    return { code: code(scene, step), text: text(scene, step, steps), stored: step?.to ?? null, isNow: step !== null && found === index };
  });
}

function readCode(scene, step) {
  if (step?.kind === "cached") return `prefix cache → generate.past[0:${step.to}]`;
  return step === null ? `prefill.present[0:${scene.prompt || "N"}]` : `prefill.present[${step.from}:${step.to}]`;
}

function readText(scene, step, steps) {
  if (isReadByGenerate(scene, steps)) return "not performed: a generate model reads a prompt of one token";
  if (step === null) return "prefill reads the prompt";
  if (step.kind === "cached") return "rows of an earlier prompt that begins alike";
  const chunks = steps.filter(({ kind }) => kind === "prefill");
  const number = chunks.indexOf(step);
  return `chunk ${count(number + 1)} of ${count(chunks.length)}, read by prefill ${count(scene.chunks[number].model)}`;
}

function copyCode(scene, step) {
  const rows = `[0:${step?.to ?? (scene.prompt || "N")}]`;
  return `prefill.present${rows} → generate.past${rows}`;
}

function copyText(scene, step, steps) {
  if (isReadByGenerate(scene, steps)) return "copy_kvcache(): not performed, prefill has no rows";
  if (step === null) return "copy_kvcache(): needed only if the models do not share these tensors";
  if (scene.copied === 0) return "copy_kvcache(): not performed here, the models share these tensors";
  const rest = scene.copied < step.to * scene.bytesPerToken ? "; the models share the other rows" : "";
  return `copy_kvcache(): ${bytes(scene.copied)} copied${rest}`;
}

function rowCode(scene, step) {
  return `generate.present[0:1] → generate.past[${step === null ? "n:n+1" : `${step.from}:${step.to}`}]`;
}

function rowText(scene) {
  return `update_kvcache_for(): each token's row is copied, ${bytes(scene.bytesPerToken)}`;
}

function isReadByGenerate(scene, steps) {
  return scene.isRead && steps[0]?.kind === "generate";
}
