// Reads {numbers, asked} from standard input and answers with the page's own modules.
import { readFileSync } from "node:fs";
import { read } from "../../../src/expost/page/static/bounds.js";
import { unpacked } from "../../../src/expost/page/static/numbers.js";
import { factsOf } from "../../../src/expost/page/static/records.js";
import { together } from "../../../src/expost/page/static/together.js";

const { numbers: packed, asked } = JSON.parse(readFileSync(0, "utf8"));
const numbers = unpacked(packed);
const figures = asked.map(([place, answers, options]) => {
  if (place === null) {
    const facts = numbers.publications.map((publication) => factsOf(numbers, publication, answers));
    return [together(numbers, facts, options)];
  }
  const { lower, upper, reportCost, total } = read(numbers, numbers.publications[place], answers, options);
  return [lower, upper, reportCost, total];
});
process.stdout.write(JSON.stringify(figures));
