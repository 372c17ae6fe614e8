// Markdown of an answer as nodes. Answers are untrusted: raw HTML is shown as text, and DOMPurify admits only
// the tags below, without images, styles or scripts.

import { Marked } from "./vendor/marked.esm.js";
import "./vendor/purify.min.js";

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${escape(text)}</p>` : escape(text)),
    image: ({ text, href }) => escape(`[image: ${text || href}]`), // nothing is loaded from elsewhere
    heading({ tokens, depth }) {
      const level = Math.min(depth + 3, 6); // below the page's own headings
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
  },
});

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "em", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "start"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
};

/** Return a DocumentFragment of a text in Markdown. */
export function render(text) {
  const fragment = globalThis.DOMPurify.sanitize(marked.parse(text), ALLOWED);
  for (const link of fragment.querySelectorAll("a")) {
    link.rel = "noopener noreferrer nofollow";
    link.target = "_blank";
  }
  for (const wide of fragment.querySelectorAll("pre, table")) {
    wide.tabIndex = 0; // they scroll sideways, with the keyboard, too
  }
  return fragment;
}
