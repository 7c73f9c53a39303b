// What Python hands to these tests: the page's constants and sentences, and its numbers for each golden publication.
import { readFileSync } from "node:fs";
import { unpacked } from "../../../src/expost/page/static/numbers.js";

const path = process.env.EXPOST_NUMBERS;
if (!path) throw new Error("these tests are started by tests/page/test_parity.py, which sets EXPOST_NUMBERS");

const given = JSON.parse(readFileSync(path, "utf8"));
export const { constants, texts } = given;
export const numbers = Object.fromEntries(Object.entries(given.numbers).map(([name, packed]) => [name, unpacked(packed)]));
export const golden = (name) => JSON.parse(readFileSync(new URL(`../../golden/${name}.json`, import.meta.url), "utf8"));
