// Drawings as SVG, built from numbers and texts, never from markup.

const SPACE = "http://www.w3.org/2000/svg";

export function svg(kind, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

// A drawing with a name for those who do not see it.
export const canvas = (width, height, description, attributes = {}) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description, ...attributes });

// A part of a page's picture that says nothing of its own.
export const ornament = (width, height, attributes = {}) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", ...attributes });
