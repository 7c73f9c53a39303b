// Encodes single cells; null where the page refuses one.
import { readFileSync } from "node:fs";
import { encodeFeature, Refusal } from "../../../src/expost/page/static/encoding.js";

const { fields, cells, words } = JSON.parse(readFileSync(0, "utf8"));
const encoded = cells.map(([place, text]) => {
  try {
    return encodeFeature(fields[place], text, words);
  } catch (problem) {
    if (problem instanceof Refusal) return null;
    throw problem;
  }
});
process.stdout.write(JSON.stringify(encoded));
