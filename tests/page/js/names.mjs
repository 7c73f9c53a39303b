// Answers with the names that the page has formulas and words for.
import { DERIVATIVES } from "../../../src/expost/page/static/losses.js";
import { BESIDE, KINDS } from "../../../src/expost/page/static/odds.js";

const names = (table) => Object.keys(table).sort();
process.stdout.write(
  JSON.stringify({ derivatives: names(DERIVATIVES), titles: names(KINDS), reports: names(BESIDE) }),
);
