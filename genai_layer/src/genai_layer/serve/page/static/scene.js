// Scenes: what the four pictures draw, of one conversation. The running stack makes one (a State of /npu/events and one
// of its slots), and the sliders make one (a plan of /npu/plan); the pictures do not know which.

/**
 * @typedef {object} Scene
 * @property {"free"|"prefilling"|"generating"|"finished"|"rejected"} phase
 * @property {number} capacity      rows of the KV buffer
 * @property {number} maxPrompt     MAX_PROMPT_LEN
 * @property {number} minResponse   MIN_RESPONSE_LEN
 * @property {number} prompt        tokens of the prompt
 * @property {number} cached        of them, rows taken from the prefix cache
 * @property {boolean} isRead       whether the whole prompt is read
 * @property {number} stored        rows written so far: the write position
 * @property {number} maskOnes      ones of the attention mask
 * @property {{tokens: number, model: number}[]} chunks   of the prompt, as prefill models read them
 * @property {number[]} prefillModels                     tokens of each prefill model
 * @property {{capacity: number, chosen: boolean}[]} variants
 * @property {number} needed        rows that the variant must hold: the prompt and MIN_RESPONSE_LEN, or those stored
 * @property {string} reason        why the variant was chosen, or why the prompt does not fit
 * @property {number} copied        bytes copied from prefill to generate
 * @property {number} copiedByNpuw  bytes that the real NPUW would copy
 * @property {number} bytesPerToken of K and V, in all layers
 * @property {boolean} isFirst      whether no request has run yet
 * @property {{name: string, kind: string, bytes: number, address: number|null, slot: number|null}[]} memory
 * @property {{slot: number, bytes: number, used: number, address: number|null}[]} lanes   KV buffers
 */

/** Return the scene of a slot, with the memory of the device. slot: of `state.slots`, or `state.last_ended`. */
export function ofSlot(state, slot, finished) {
  const { kv } = state;
  const stored = slot.stored_tokens;
  return {
    phase: finished ? "finished" : slot.phase,
    ...ofBuffer(kv.capacity, kv.max_prompt, kv.min_response),
    prefillModels: kv.prefill_models,
    bytesPerToken: kv.bytes_per_token,
    prompt: slot.prompt_tokens,
    cached: slot.cached_tokens,
    isRead: slot.phase === "generating",
    stored,
    maskOnes: slot.mask_ones,
    chunks: slot.prefill_chunks.map((tokens) => ({ tokens, model: modelOf(kv.prefill_models, tokens) })),
    variants: kv.variants.map((capacity) => ({ capacity, chosen: capacity === slot.variant })),
    needed: neededRows(slot, kv),
    reason: slot.variant_reason ?? "",
    copied: slot.copied_bytes,
    copiedByNpuw: slot.prompt_tokens > 1 ? slot.prompt_tokens * kv.bytes_per_token : 0,
    isFirst: state.last_step === null,
    memory: state.memory,
    lanes: lanesOf(state, slot),
  };
}

/** Return the scene of a plan after some tokens of the answer. state: the running stack's, for its other memory. */
export function ofPlan(plan, answered, state) {
  const { bytes_per_token: bytesPerToken, prefill_models: prefillModels } = state.kv;
  const stored = plan.fits ? plan.bytes_used / bytesPerToken + answered : 0;
  const others = state.memory.filter((item) => item.kind !== "kv_cache");
  const own = { name: "KV cache", kind: "kv_cache", bytes: plan.kv_bytes, address: null, slot: 0 };
  return {
    phase: plan.fits ? (answered === 0 ? "prefilling" : "generating") : "rejected",
    ...ofBuffer(plan.capacity, plan.max_prompt_len, plan.min_response_len),
    prefillModels: [...new Set([...prefillModels, ...plan.chunks.map((chunk) => chunk.model)])],
    bytesPerToken,
    prompt: plan.prompt_tokens,
    cached: 0,
    isRead: plan.fits,
    stored,
    maskOnes: stored,
    chunks: plan.chunks,
    variants: plan.variants,
    needed: plan.needed,
    reason: plan.reason,
    copied: plan.copy_bytes_here,
    copiedByNpuw: plan.copy_bytes_npuw,
    isFirst: state.last_step === null,
    memory: [own, ...others],
    lanes: [{ ...own, used: stored * bytesPerToken }],
  };
}

/** Return the slot of a request; else the first that works; null if all are free. */
export function busySlot(slots, request) {
  const busy = slots.filter((slot) => slot.phase !== "free");
  return busy.find((slot) => slot.request !== null && slot.request === request) ?? busy[0] ?? null;
}

function ofBuffer(capacity, maxPrompt, minResponse) {
  return { capacity, maxPrompt, minResponse };
}

function modelOf(models, tokens) {
  const able = models.filter((model) => model >= tokens);
  return able.length > 0 ? Math.min(...able) : Math.max(...models);
}

/** Rows that the slot's variant was chosen for. Conversations that generate together share one, without a reserve. */
function neededRows(slot, kv) {
  const reserved = slot.prompt_tokens + kv.min_response;
  const isShared = slot.variant !== null && slot.variant < reserved && slot.variant < Math.max(...kv.variants);
  return isShared ? slot.stored_tokens : Math.max(reserved, slot.stored_tokens);
}

function lanesOf(state, shown) {
  const items = state.memory.filter((item) => item.kind === "kv_cache");
  const numbers = [...new Set(items.map((item) => item.slot))];
  return numbers.map((slot) => {
    const own = items.filter((item) => item.slot === slot);
    const bytes = own.reduce((sum, item) => sum + item.bytes, 0);
    const rows = (slot === shown.slot ? shown : state.slots.find((each) => each.slot === slot))?.stored_tokens ?? 0;
    return { slot, bytes, used: rows * state.kv.bytes_per_token, address: own.length === 1 ? own[0].address : null };
  });
}
