// Charts for experts: the total along one answer.

import { canvas, svg } from "./drawing.js";
import { shown } from "./notation.js";

// Round numbers from 0 to `most`, about `count` of them.
export function ticks(least, most, count = 4) {
  const rough = (most - least) / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((nice) => nice * magnitude).find((nice) => nice >= rough * 0.999);
  const places = Math.max(0, 1 - Math.floor(Math.log10(step)));
  const values = [];
  for (let i = Math.ceil(least / step - 1e-9); i * step <= most * (1 + 1e-9) + 1e-12; i += 1) {
    values.push({ value: i * step, text: shown(Number((i * step).toFixed(places))) });
  }
  return values;
}

// The end of a scale; infinite and very large values are drawn there.
const largest = (values) => Math.max(...values.filter((value) => value < Number.MAX_VALUE / 4));

// A figure along one feature. `points` are {x, y}; `here` is the person's own point.
// `label` writes values along the curve, where they are no plain numbers.
export function curveChart(points, here, width, description, name, axis, label = null) {
  const height = 230;
  const box = { left: 52, right: width - 14, top: 30, bottom: height - 44 };
  const most = 1.12 * largest([...points.map((point) => point.y), 1e-9]);
  const [first, last] = [points[0].x, points[points.length - 1].x];
  const x = (value) => box.left + (box.right - box.left) * ((value - first) / (last - first));
  const y = (value) => box.bottom - (box.bottom - box.top) * Math.min(value / most, 1);
  const drawing = canvas(width, height, description);
  for (const { value, text } of ticks(0, most)) {
    drawing.append(
      svg("line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value), class: "grid" }),
      svg("text", { x: box.left - 8, y: y(value) + 4, class: "label", "text-anchor": "end" }, text),
    );
  }
  for (const { value, text } of ticks(first, last, width < 480 ? 3 : 5)) {
    const written = label === null ? text : label(value);
    drawing.append(svg("text", { x: x(value), y: box.bottom + 20, class: "label", "text-anchor": "middle" }, written));
  }
  drawing.append(
    svg("text", { x: (box.left + box.right) / 2, y: height - 6, class: "label", "text-anchor": "middle" }, name),
    svg("text", { x: 4, y: 14, class: "label strong" }, axis),
    svg("path", { d: points.map((point, i) => `${i ? "L" : "M"}${x(point.x)} ${y(point.y)}`).join(""), class: "curve" }),
  );
  if (here) drawing.append(svg("circle", { cx: x(here.x), cy: y(here.y), r: 6, class: "here" }));
  return drawing;
}

// The pixels that a letter and a line of names take.
const [LETTER, LINE] = [8, 18];

// A text in lines of so many letters, without a word in two where it fits into one.
const linesOf = (text, letters) => text.match(new RegExp(`\\S.{0,${letters - 1}}(?!\\S)|\\S{1,${letters}}`, "gu")) ?? [text];

// A bar for each value of a category, with the person's own marked. Names that are too long to stand beside the bars
// stand above them.
export function barChart(bars, own, width, description) {
  const beside = Math.min(180, width * 0.36);
  const above = bars.some(({ name }) => name.length > beside / LETTER);
  const label = above ? 0 : beside;
  const names = bars.map(({ name }) => (above ? linesOf(name, Math.floor(width / LETTER)) : [name]));
  const rows = names.map((lines) => 34 + (above ? LINE * lines.length : 0));
  const most = largest([...bars.map((bar) => bar.y), 1e-9]);
  const drawing = canvas(width, rows.reduce((sum, row) => sum + row, 6), description);
  let bottom = 0;
  bars.forEach((bar, i) => {
    bottom += rows[i];
    const middle = bottom - 14;
    const long = (width - label - 80) * Math.min(bar.y / most, 1);
    const start = above ? { x: 0, y: middle - LINE * names[i].length } : { x: label - 10, y: middle + 5 };
    const anchor = above ? "start" : "end";
    drawing.append(
      ...names[i].map((line, k) => svg("text", { x: start.x, y: start.y + LINE * k, class: "label", "text-anchor": anchor }, line)),
      svg("rect", { x: label, y: middle - 9, width: Math.max(long, 2), height: 18, rx: 3, class: bar.value === own ? "bar own" : "bar" }),
      svg("text", { x: label + long + 8, y: middle + 5, class: "label" }, bar.text),
    );
  });
  return drawing;
}
