// Elements of HTML and SVG, made without parsing text: nothing that comes from outside becomes markup here.

const SVG = "http://www.w3.org/2000/svg";

/** Return an HTML element. Attributes that are null or false are left out; children are nodes or texts. */
export function html(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Return an SVG element, like `html`. */
export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/** Return the element with an id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Set a text only if it changed, so that nothing is drawn or announced again. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
