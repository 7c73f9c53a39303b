// Answers with the names that the page has formulas and words for.
import { DERIVATIVES } from "../../../src/expost/page/static/losses.js";
import { KINDS, REPORTS } from "../../../src/expost/page/static/odds.js";

process.stdout.write(
  JSON.stringify({ derivatives: Object.keys(DERIVATIVES).sort(), titles: [...KINDS].sort(), reports: [...REPORTS].sort() }),
);
