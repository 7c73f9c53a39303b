// Sentences of the page's language, and elements made from them; never from markup.

let sentences = {};
let code = "en";

// The catalogue is set once, before anything is shown.
export function speak(language, texts) {
  [code, sentences] = [language, texts];
}

export const language = () => code;

function sentenceOf(key) {
  const [part, name] = key.split(".");
  const sentence = sentences[part]?.[name];
  if (sentence === undefined) throw new Error(`no sentence ${key}`);
  return sentence;
}

// A sentence by its key, such as "answer.headline", with what it names filled in.
export function say(key, named = {}) {
  return sentenceOf(key).replace(/\{(\w+)\}/g, (whole, hole) => String(named[hole] ?? whole));
}

// The same for a number of things.
export const sayCount = (key, count, named = {}) => say(`${key}_${count === 1 ? "one" : "other"}`, { ...named, count });

export function element(kind, properties = {}, ...children) {
  const made = document.createElement(kind);
  const { dataset, attributes, ...others } = properties;
  Object.assign(made, others);
  Object.assign(made.dataset, dataset);
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A sentence as nodes: the parts between two stars are bold. The stars are read before anything is filled in.
export function rich(key, named = {}) {
  return sentenceOf(key).split("**").map((piece, i) => {
    const filled = piece.replace(/\{(\w+)\}/g, (whole, hole) => String(named[hole] ?? whole));
    return i % 2 ? element("strong", { textContent: filled }) : filled;
  });
}

export const paragraph = (className, key, named) => element("p", { className }, ...rich(key, named));

// A day as the language writes it, from one such as 2026-06-03.
export function day(date) {
  const [year, month, number] = date.split("-").map(Number);
  return say(number === 1 ? "page.first_day" : "page.day", { day: number, month: say("page.months").split(" ")[month - 1], year });
}

// Names with commas between them and a word before the last.
export function listed(names) {
  const last = names.at(-1);
  return names.length < 2 ? (last ?? "") : `${names.slice(0, -1).join(", ")}${say("page.and")}${last}`;
}

// What to call a field: its title, its name, or a word for what has none.
export function titleOf(field) {
  if (field.title) return field.title;
  if (field.role === "weight") return say("form.weight");
  if (field.unnamed === undefined) return field.name.trim();
  return field.role === "outcome" ? say("form.outcome") : say("form.feature", { name: field.unnamed });
}

// What to call one of its values.
export function valueTitle(field, value) {
  const values = field.categories ?? field.classes;
  const place = values?.indexOf(value) ?? -1;
  if (field.cycle === "month") return say("page.months").split(" ")[place];
  // 5 January 1970 was a Monday.
  if (field.cycle) return new Intl.DateTimeFormat(code, { weekday: "long", timeZone: "UTC" }).format((place + 4) * 86_400_000);
  return field.titles?.length && place >= 0 ? field.titles[place] : value;
}
