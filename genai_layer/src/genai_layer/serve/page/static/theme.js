// The switch between light and dark; until it is used, the system's preference counts.

import { byId } from "./dom.js";

const NAME = "theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

export function start() {
  apply(stored());
  byId("theme").addEventListener("click", () => {
    const next = current() === "dark" ? "light" : "dark";
    store(next);
    apply(next);
  });
  dark.addEventListener("change", () => apply(stored()));
}

function current() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

function apply(theme) {
  if (theme !== null) document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(current() === "dark"));
}

function stored() {
  try {
    return localStorage.getItem(NAME);
  } catch {
    return null; // storage may be switched off
  }
}

function store(theme) {
  try {
    localStorage.setItem(NAME, theme);
  } catch {
    // the choice lasts until the page is left
  }
}
