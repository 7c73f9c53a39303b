// Opens or takes a table of hers and shows what was read. The file stays in this page's memory.

import { eventOf, FileRefusal, MOST_BYTES, MOST_ROWS, namesOf, readTable } from "./columns.js";
import { answerTitle } from "./control.js";
import { UNKNOWN } from "./encoding.js";
import { element, say, titleOf } from "./language.js";
import { rightOfHundred } from "./odds.js";
import { textOf } from "./table.js";

const MOST_NAMES = 12;

const line = (...parts) => element("p", {}, parts.filter(Boolean).join(" "));

function tableOf(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", textContent: text })));
  const body = rows.map((cells) =>
    element("tr", {}, ...cells.map((cell) => (typeof cell === "string" ? element("td", { textContent: cell }) : element("td", {}, cell)))),
  );
  const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { className: "scroll", tabIndex: 0, attributes: { role: "region", "aria-label": heads.join(", ") } }, made);
}

// `take` is called with a row, `takeAll` with all rows of one person and answers why not, `refused` with the reason,
// `listed` where there are several rows to choose from, and `limit` tells a row's total or null.
export class OwnFile {
  constructor(numbers, places, { take, takeAll, refused, listed, limit }) {
    Object.assign(this, { numbers, places, take, takeAll, refused, listed, limit });
    const { input, open, drop, check, paste, names } = places;
    const [known, outcome] = ["feature", "outcome"].map((role) =>
      numbers.fields.filter((field) => field.role === role).flatMap((field) => [namesOf(field)[0], ...eventOf(field)]),
    );
    // The outcome is named however many features there are: without it there is no result.
    const some = known.length > MOST_NAMES ? [...known.slice(0, MOST_NAMES), "…"] : known;
    names.textContent = say("file.names_note", { names: [...some, ...outcome].join(", ") });
    open.addEventListener("click", () => input.click());
    input.addEventListener("change", () => this.open(input.files[0]));
    check.addEventListener("click", () => this.show(paste.value));
    paste.addEventListener("paste", (event) => {
      // To lay out so long a text takes the browser longer than to read it.
      if (event.clipboardData.getData("text").length <= MOST_BYTES) return;
      event.preventDefault();
      this.refuse(say("file.too_long", { count: MOST_ROWS }));
    });
    for (const kind of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", kind === "dragover");
        if (kind === "drop") this.open(event.dataTransfer.files[0]);
      });
    }
  }

  async open(file) {
    if (!file) return;
    const long = file.size > MOST_BYTES;
    const text = long ? null : textOf(new Uint8Array(await file.arrayBuffer()));
    // So that the same file can be opened again.
    this.places.input.value = "";
    if (long) this.refuse(say("file.too_long", { count: MOST_ROWS }));
    else if (text === null) this.refuse(say("file.not_text"));
    else this.show(text);
  }

  // Nothing of an older file or result stays.
  refuse(sentence) {
    this.places.preview.replaceChildren(
      element("p", { className: "msg error", textContent: `${say("file.refused")} ${sentence}` }),
    );
    this.refused(sentence);
  }

  show(text) {
    let table;
    try {
      table = readTable(this.numbers, text);
    } catch (problem) {
      if (!(problem instanceof FileRefusal)) throw problem;
      this.refuse(problem.message);
      return;
    }
    const { rows, unused, header } = table;
    const parts = [
      ...(header ? [] : [line(say("file.no_header"))]),
      ...(unused.length ? [line(say("file.not_needed", { names: unused.join(", ") }))] : []),
    ];
    if (this.numbers.ofPerson && rows.length > 1) {
      const refused = this.takeAll(rows);
      if (refused !== null) return this.refuse(refused);
      return this.places.preview.replaceChildren(line(say("file.all_rows", { ...this.numbers.words, count: rows.length }), say("file.filled")), ...parts);
    }
    this.places.preview.replaceChildren(...(rows.length > 1 ? this.list(rows) : this.single(rows[0])), ...parts);
    if (rows.length === 1) this.take({ ...rows[0], line: null });
    else this.listed();
    return undefined;
  }

  single({ answers, cells, problems }) {
    const { fields } = this.numbers;
    const noWeight = (place) => fields[place].role === "weight" && [undefined, UNKNOWN].includes(answers[place]);
    const asked = fields.flatMap((_, place) => (noWeight(place) ? [] : [place]));
    const found = asked.filter((place) => answers[place] !== undefined);
    const unread = problems.map(({ place }) => place);
    const missing = asked.filter((place) => answers[place] === undefined && !unread.includes(place));
    return [
      line(say("file.found", { done: found.length, all: asked.length }), say("file.filled")),
      ...problems.map(({ place, text }) => element("p", { className: "msg error", textContent: say("page.entry", { title: titleOf(fields[place]), text }) })),
      ...(missing.length ? [line(say("file.not_found", { names: missing.map((place) => titleOf(fields[place])).join(", ") }))] : []),
      tableOf(
        [say("file.column_question"), say("file.column_file"), say("file.column_read")],
        found.map((place) => [titleOf(fields[place]), cells[place], answerTitle(this.numbers, fields[place], answers[place])]),
      ),
    ];
  }

  list(rows) {
    const button = (row) => {
      const made = element("button", { type: "button", className: "btn text", textContent: say("file.take", { line: row.line }) });
      made.addEventListener("click", () => this.take(row));
      return made;
    };
    const figure = (row) => {
      const total = this.limit(row);
      if (total === null) return say("timeline.step_waiting");
      return element("data", { value: String(total), textContent: say("timeline.figure", { n: rightOfHundred(total) }) });
    };
    return [
      line(say("file.rows", { count: rows.length })),
      tableOf(
        [say("file.column_line"), say("file.column_limit"), say("file.column_take")],
        rows.map((row) => [String(row.line), figure(row), button(row)]),
      ),
    ];
  }

  clear() {
    this.places.preview.replaceChildren();
    this.places.paste.value = "";
  }
}
