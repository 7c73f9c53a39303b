// Starts the page: reads the numbers, listens to the form, shows the answer.

import { Answer } from "./answer.js";
import { read, readPerson } from "./bounds.js";
import { Cards } from "./cards.js";
import { download, showDetails } from "./details.js";
import { showCurve, showFigures } from "./figures.js";
import { OwnFile } from "./file.js";
import { element, say, speak, titleOf } from "./language.js";
import { percentText, shown } from "./notation.js";
import { unpacked } from "./numbers.js";
import { Announcer, showAnswers, Side } from "./side.js";
import { showTimeline } from "./timeline.js";
import { totalOf, viewOf, walletOf } from "./view.js";

const $ = (id) => document.getElementById(id);

const levels = (numbers) => numbers.confidences.map((text) => Number.parseFloat(text) / 100);

function options() {
  const membership = document.querySelector("input[name=member]:checked").value;
  return {
    confidence: $("confidence").selectedIndex,
    member: { yes: true, no: false, unknown: null }[membership],
    every: $("every").checked,
  };
}

function start(numbers) {
  const { fields, publications } = numbers;
  const confidences = numbers.confidences.map((text) => percentText(shown(Number.parseFloat(text))));
  const form = new Cards(numbers, $("form"), (settled) => changed(settled));
  const answer = new Answer($("answer"));
  const announcer = new Announcer($("announce"));
  const goTo = (place) => {
    place.scrollIntoView({ block: "start" });
    place.focus({ preventScroll: true });
  };
  const side = new Side($("side"), () => goTo($("answer")));
  const memory = { refused: null, tries: new Set(), line: null, settled: true };
  let view = null;

  // Where the answer's button leads: to what is missing or wrong.
  function act() {
    if (view.state === "refused") {
      $("from").open = true;
      $("paste").focus();
      return;
    }
    const [first] = { waiting: view.wrong, crowded: view.opened, own: [0] }[view.state] ?? view.missing;
    if (view.state === "uncounted") $("count").focus();
    else form.focus(first ?? 0);
  }

  function cover() {
    $("every").checked = true;
    update();
  }

  function experts() {
    if (!$("experts").open) return;
    const chosen = options();
    $("figures-title").textContent = say(
      view.state === "own" || view.rows === null ? "experts.figures" : "experts.figures_example",
    );
    showFigures($("figures"), fields, { ...view, publications, confidence: confidences[chosen.confidence] });
    const width = Math.max(280, Math.min($("curve").clientWidth || 640, 760));
    const along = Number($("along").value);
    const single = view.rows?.length === 1 && !view.forgotten && !view.partly ? view.rows[0] : null;
    showCurve($("curve"), numbers, single, along, (all) => totalOf(numbers, [all], chosen), width);
  }

  function update() {
    const chosen = options();
    form.explain();
    view = viewOf(numbers, form, chosen, memory);
    const { rows, places, readings, opened, wrong, missing, wallet, ...told } = view;
    answer.show({ ...told, confidence: levels(numbers)[chosen.confidence], act, cover });
    showTimeline($("timeline"), numbers, publications.map((_, i) => readings?.[i].total ?? null), view);
    side.show(view);
    showAnswers($("print-answers"), numbers, view);
    announcer.tell(view);
    experts();
  }

  const changed = (settled = true) => {
    Object.assign(memory, { refused: null, line: null, settled });
    update();
  };
  // What the file has no column for stays as she answered it. An empty cell is open: the old answer may be another's.
  const completed = ({ answers, places }) => {
    const old = form.state.rows[0] ?? [];
    return answers.map((one, place) => (places.includes(place) ? one : old[place]));
  };
  const file = new OwnFile(
    { ...numbers, ofPerson: form.ofPerson, words: form.words },
    { input: $("file"), open: $("open-file"), drop: $("drop"), check: $("check"), paste: $("paste"), names: $("names-note"), preview: $("preview") },
    {
      take(row) {
        form.fill([completed(row)], [row]);
        Object.assign(memory, { refused: null, line: row.line });
        update();
        if (row.line !== null) goTo($("answer"));
      },
      // All rows of the file are hers, as far as the page takes so many.
      takeAll(rows) {
        if (rows.length > form.most) return say("form.too_many", { ...form.words, most: form.most });
        form.fill(rows.map(completed), rows);
        Object.assign(memory, { refused: null, line: null });
        update();
        return null;
      },
      refused(reason) {
        memory.refused = reason;
        update();
      },
      // A list is no answer yet, but what was wrong with the file before it is over.
      listed() {
        memory.refused = null;
        update();
      },
      limit(row) {
        const all = completed(row);
        return all.includes(undefined) ? null : totalOf(numbers, [all], options());
      },
    },
  );
  $("clear").addEventListener("click", () => {
    form.clear();
    file.clear();
    changed();
    form.focus(0);
  });
  for (const id of ["confidence", "every", "along"]) $(id).addEventListener("change", update);
  document.querySelectorAll("input[name=member]").forEach((one) => one.addEventListener("change", update));
  $("experts").addEventListener("toggle", experts);
  window.addEventListener("resize", experts);
  $("print").addEventListener("click", () => window.print());
  $("enter").addEventListener("click", () => act());
  document.querySelectorAll("[data-file]").forEach((button) => {
    // Old browsers cannot unpack it.
    button.hidden = !("DecompressionStream" in globalThis);
    button.addEventListener("click", () => {
      const number = Number(button.dataset.file);
      const name = publications.length > 1 ? `publication-${number + 1}.json` : "publication.json";
      download($(`file-${number}`).textContent, name);
    });
  });
  $("confidence").append(...confidences.map((text) => element("option", { textContent: text })));
  $("confidence").selectedIndex = numbers.usual;
  $("along").append(...fields.map((field, i) => element("option", { value: String(i), textContent: titleOf(field) })));
  // On a narrow screen the answer comes first.
  const [narrow, printed] = ["(max-width: 60rem)", "print"].map((media) => window.matchMedia(media));
  const fold = () => {
    $("label").open = printed.matches || !narrow.matches;
  };
  for (const media of [narrow, printed]) media.addEventListener("change", fold);
  fold();
  showDetails($("published"), fields, publications);
  update();
  // So that anyone can check the page's arithmetic from the console.
  globalThis.expost = {
    numbers,
    read: (place, answers, chosen) => read(numbers, publications[place], answers, chosen),
    readPerson: (place, rows, forgotten, chosen) => readPerson(numbers, publications[place], rows, forgotten, chosen),
    total: (answers, chosen) => totalOf(numbers, [answers], chosen),
    wallet: (answers, chosen) => walletOf(numbers, [answers], chosen),
  };
}

const numbers = unpacked(JSON.parse($("numbers").textContent));
speak(numbers.language, numbers.texts);
start(numbers);
