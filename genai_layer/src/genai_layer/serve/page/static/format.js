// Numbers as people read them: with separators, units and few digits.

const NONE = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const percents = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });

/** 3000 → "3,000". */
export function count(value) {
  return whole.format(value);
}

/** (1, "row") → "1 row"; (3000, "row") → "3,000 rows". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** 0.836 → "84%". */
export function percent(share) {
  return percents.format(share);
}

/** Bytes → "1.3 MB"; units are decimal. */
export function bytes(value) {
  if (value < 1000) return `${whole.format(value)} bytes`;
  const units = ["kB", "MB", "GB", "TB"];
  let scaled = value / 1000;
  let unit = 0;
  while (scaled >= 999.5 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${short(scaled)} ${units[unit]}`;
}

/** Milliseconds → "340 µs", "45.2 ms", "1.25 s"; null → "–". */
export function milliseconds(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 1) return `${short(value * 1000)} µs`;
  if (value < 1000) return `${short(value)} ms`;
  return `${short(value / 1000)} s`;
}

/** A rate → "25.4"; null → "–". */
export function rate(value) {
  return value === null || value === undefined ? NONE : short(value);
}

function short(value) {
  if (value >= 100) return whole.format(value);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
