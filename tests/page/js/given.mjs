// What Python hands to these tests: the page's constants, and its numbers for each golden publication.
import { readFileSync } from "node:fs";

const path = process.env.EXPOST_NUMBERS;
if (!path) throw new Error("these tests are started by tests/page/test_parity.py, which sets EXPOST_NUMBERS");

export const { constants, numbers } = JSON.parse(readFileSync(path, "utf8"));
export const golden = (name) => JSON.parse(readFileSync(new URL(`../../golden/${name}.json`, import.meta.url), "utf8"));
