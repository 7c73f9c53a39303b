// Reads {numbers, asked} from standard input and answers with the page's own modules.
import { readFileSync } from "node:fs";
import { read, readAll } from "../../../src/expost/page/static/bounds.js";

const { numbers, asked } = JSON.parse(readFileSync(0, "utf8"));
const figures = asked.map(([place, answers, options]) => {
  if (place === null) return [readAll(numbers, answers, options).total];
  const { lower, upper, reportCost, total } = read(numbers, numbers.publications[place], answers, options);
  return [lower, upper, reportCost, total];
});
process.stdout.write(JSON.stringify(figures));
