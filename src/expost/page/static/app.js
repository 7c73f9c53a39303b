// Starts the page: reads the numbers, listens to the form, shows the result.

import { read, readAll } from "./bounds.js";
import { showDetails } from "./details.js";
import { encodeFeature, encodeOutcome, Refusal } from "./encoding.js";
import { element, Form } from "./form.js";
import { beside, oddsSentence, promise, title } from "./odds.js";
import { showReadings, showWhatIf } from "./results.js";

const $ = (id) => document.getElementById(id);

function introduce({ fields, publications }) {
  $("released").append(
    ...publications.flatMap((publication) => [
      element("p", { className: "lead", textContent: `Released: ${title(fields, publication)}. ${beside(publication)}` }),
      element("p", { textContent: promise(publication.plan, publication.insecure !== null) }),
    ]),
  );
}

function options() {
  const membership = document.querySelector("input[name=member]:checked").value;
  return {
    confidence: $("confidence").selectedIndex,
    member: { yes: true, no: false, unknown: null }[membership],
    every: $("every").checked,
  };
}

// The answers that cannot be read, by the index of their field.
function refusalsOf({ fields, constants }, answers) {
  const refusals = new Map();
  fields.forEach((field, place) => {
    try {
      if (field.role === "feature") encodeFeature(field, answers[place], constants.words);
      else encodeOutcome(field, answers[place], []);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      refusals.set(place, problem);
    }
  });
  return refusals;
}

function waiting(fields, refusals) {
  const names = [...refusals.keys()].map((place) => fields[place].name);
  const listed = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
  return `Answer ${listed} to see what it cost you.`;
}

function start(numbers) {
  const { fields, publications } = numbers;
  const form = new Form(numbers, $("fields"));
  introduce(numbers);
  showDetails($("published"), fields, publications);
  $("order").textContent = fields.map((field) => field.name).join(", ");
  $("confidence").append(...numbers.confidences.map((text) => element("option", { textContent: text })));
  $("confidence").selectedIndex = numbers.usual;
  $("feature").append(...fields.map((field, i) => element("option", { value: String(i), textContent: field.name })));

  function update() {
    const [answers, chosen] = [form.answers, options()];
    const refusals = refusalsOf(numbers, answers);
    const wrong = [...refusals].filter(([, problem]) => !problem.missing);
    form.explain(new Map(wrong.map(([place, problem]) => [place, problem.message])));
    $("readings").hidden = $("what-if").hidden = refusals.size > 0;
    if (refusals.size > 0) {
      $("odds").textContent = waiting(fields, refusals);
      return;
    }
    const all = readAll(numbers, answers, chosen);
    $("odds").textContent = oddsSentence(all.total, publications.length > 1);
    $("sure").textContent = `This holds with ${$("confidence").value} confidence${
      chosen.every ? ", for every record at once" : ", for answers that were fixed before the publication was made"
    }.`;
    showReadings($("readings-list"), fields, publications, all);
    showWhatIf($("curve"), numbers, answers, chosen, Number($("feature").value));
  }

  $("form").addEventListener("input", update);
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $("feature").addEventListener("input", update);
  $("fill").addEventListener("click", () => {
    $("pasted").textContent = form.paste($("line").value);
    update();
  });
  window.addEventListener("resize", update);
  update();
  // So that anyone can check the page's arithmetic from the console.
  globalThis.expost = {
    numbers,
    read: (place, answers, chosen) => read(numbers, publications[place], answers, chosen),
    readAll: (answers, chosen) => readAll(numbers, answers, chosen),
  };
}

start(JSON.parse($("numbers").textContent));
