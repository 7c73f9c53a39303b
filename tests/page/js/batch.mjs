// Reads {numbers, asked} from standard input and answers with the page's own modules.
import { readFileSync } from "node:fs";
import { read, readPerson } from "../../../src/expost/page/static/bounds.js";
import { unpacked } from "../../../src/expost/page/static/numbers.js";
import { factsOfPerson } from "../../../src/expost/page/static/persons.js";
import { together, wallet } from "../../../src/expost/page/static/together.js";

const { numbers: packed, asked } = JSON.parse(readFileSync(0, "utf8"));
const numbers = unpacked(packed);
// With a number of forgotten rows, the answers are those of all rows of a person.
const figures = asked.map(([place, answers, options, forgotten = null]) => {
  if (place === null) {
    const rows = forgotten === null ? [answers] : answers;
    const facts = numbers.publications.map((publication) => factsOfPerson(numbers, publication, rows, forgotten ?? 0));
    return [together(numbers, facts, options), wallet(numbers, facts, options) ?? -1];
  }
  const publication = numbers.publications[place];
  const found =
    forgotten === null ? read(numbers, publication, answers, options) : readPerson(numbers, publication, answers, forgotten, options);
  const { lower, upper, reportCost, total } = found;
  return [lower, upper, reportCost, total];
});
process.stdout.write(JSON.stringify(figures));
