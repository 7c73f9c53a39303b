// The icon array: 100 figures, ten in a row, a gap after 50. Right by luck, right because of the model, wrong: three
// shapes, so that no colour is needed.

import { canvas, ornament, svg } from "./drawing.js";
import { say } from "./language.js";

// One figure in a box of 20 by 30: a head and a body.
const HEAD = "M10 3.2a3.4 3.4 0 1 1 0 6.8a3.4 3.4 0 0 1 0-6.8z";
const BODY = "M6.4 11.2h7.2a2.4 2.4 0 0 1 2.4 2.4v5.6a1.3 1.3 0 0 1-2.6 0V26a1.5 1.5 0 0 1-1.5 1.5H8.1A1.5 1.5 0 0 1 6.6 26v-6.8a1.3 1.3 0 0 1-2.6 0v-5.6a2.4 2.4 0 0 1 2.4-2.4z";
const [STEP_X, STEP_Y, GAP] = [22, 32, 10];

const figure = (kind) => svg("path", { d: `${HEAD}${BODY}`, class: kind });

// The shapes of one figure.
function shapes(kind) {
  const tile = svg("rect", { x: 0.5, y: 0.5, width: 19, height: 29, rx: 3, class: "tile" });
  return kind === "more" ? [tile, figure("more")] : [figure(kind)];
}

const kindOf = (place, right) => (place < Math.min(right, 50) ? "luck" : place < right ? "more" : "wrong");

// The picture of how many of 100 guesses are right; `right` is null where that is not known.
export function people(right) {
  const description =
    right === null
      ? say("answer.after_waiting")
      : say("answer.picture_label", { right, more: right - 50, wrong: 100 - right });
  const drawing = canvas(10 * STEP_X - 2, 10 * STEP_Y + GAP - 2, description, { class: "people" });
  for (let place = 0; place < 100; place += 1) {
    const [row, column] = [Math.floor(place / 10), place % 10];
    const at = `translate(${column * STEP_X} ${row * STEP_Y + (row > 4 ? GAP : 0)})`;
    drawing.append(svg("g", { transform: at }, ...shapes(right === null ? "wrong" : kindOf(place, right))));
  }
  return drawing;
}

// One figure for the key.
export const sample = (kind, className = "") => {
  const drawing = ornament(20, 30, { class: `people ${className}` });
  drawing.append(...shapes(kind));
  return drawing;
};
