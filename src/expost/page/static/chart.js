// Drawings as SVG, built from numbers and texts, never from markup.

const SPACE = "http://www.w3.org/2000/svg";

export function svg(kind, attributes = {}, text = null) {
  const element = document.createElementNS(SPACE, kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== null) element.textContent = text;
  return element;
}

function canvas(width, height, description) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description });
}

// Round numbers from 0 to `most`, about `count` of them.
export function ticks(least, most, count = 4) {
  const rough = (most - least) / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((nice) => nice * magnitude).find((nice) => nice >= rough * 0.999);
  const places = Math.max(0, 1 - Math.floor(Math.log10(step)));
  const values = [];
  for (let i = Math.ceil(least / step - 1e-9); i * step <= most * (1 + 1e-9) + 1e-12; i += 1) {
    values.push({ value: i * step, text: String(Number((i * step).toFixed(places))) });
  }
  return values;
}

// The end of a scale; infinite and very large values are drawn there.
const largest = (values) => Math.max(...values.filter((value) => value < Number.MAX_VALUE / 4));

// The interval for the model, the total and the worst case on one scale.
export function scaleChart({ lower, upper, total, worst }, width, description) {
  const most = 1.06 * largest([total, worst ?? 0, 1e-6]);
  const [left, right, middle] = [8, width - 8, 30];
  const x = (value) => left + (right - left) * Math.min(value / most, 1);
  const drawing = canvas(width, 78, description);
  drawing.append(
    svg("rect", { x: left, y: middle - 3, width: right - left, height: 6, rx: 3, class: "track" }),
  );
  for (const { value, text } of ticks(0, most, width < 480 ? 3 : 5)) {
    drawing.append(
      svg("line", { x1: x(value), x2: x(value), y1: middle + 16, y2: middle + 22, class: "tick" }),
      svg("text", { x: x(value), y: middle + 38, class: "label", "text-anchor": value === 0 ? "start" : "middle" }, text),
    );
  }
  if (lower !== undefined) {
    // An interval too short to be seen is drawn as a dot of its own height.
    const start = x(lower);
    drawing.append(
      svg("rect", { x: start, y: middle - 8, width: Math.max(x(upper) - start, 4), height: 16, rx: 4, class: "interval" }),
    );
  }
  const at = x(total);
  drawing.append(svg("path", { d: `M${at} ${middle - 11}l9 11-9 11-9-11z`, class: "total" }));
  if (worst !== null) {
    drawing.append(
      svg("line", { x1: x(worst), x2: x(worst), y1: middle - 18, y2: middle + 16, class: "worst" }),
      svg("text", { x: x(worst) - 6, y: 11, class: "worst-label", "text-anchor": "end" }, "worst case"),
    );
  }
  return drawing;
}

// A figure along one feature. `points` are {x, y}; `here` is the person's own point.
export function curveChart(points, here, width, description, name) {
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
    drawing.append(svg("text", { x: x(value), y: box.bottom + 20, class: "label", "text-anchor": "middle" }, text));
  }
  drawing.append(
    svg("text", { x: (box.left + box.right) / 2, y: height - 6, class: "label", "text-anchor": "middle" }, name),
    svg("text", { x: 4, y: 14, class: "label" }, "total, at most"),
    svg("path", { d: points.map((point, i) => `${i ? "L" : "M"}${x(point.x)} ${y(point.y)}`).join(""), class: "curve" }),
  );
  if (here) drawing.append(svg("circle", { cx: x(here.x), cy: y(here.y), r: 6, class: "here" }));
  return drawing;
}

// A bar for each value of a category, with the person's own marked.
export function barChart(bars, own, width, description) {
  const [row, label] = [34, Math.min(180, width * 0.36)];
  const most = largest([...bars.map((bar) => bar.y), 1e-9]);
  const drawing = canvas(width, bars.length * row + 6, description);
  bars.forEach((bar, i) => {
    const middle = i * row + 20;
    const long = (width - label - 80) * Math.min(bar.y / most, 1);
    const shown = bar.name.length > label / 8 ? `${bar.name.slice(0, Math.floor(label / 8) - 1)}…` : bar.name;
    drawing.append(
      svg("text", { x: label - 10, y: middle + 5, class: "label", "text-anchor": "end" }, shown),
      svg("rect", { x: label, y: middle - 9, width: Math.max(long, 2), height: 18, rx: 3, class: bar.name === own ? "bar own" : "bar" }),
      svg("text", { x: label + long + 8, y: middle + 5, class: "label" }, bar.text),
    );
  });
  return drawing;
}
