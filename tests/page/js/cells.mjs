// Reads {numbers, asked} from standard input: the noisy count of the cell that each record is in.
import { readFileSync } from "node:fs";
import { unpacked } from "../../../src/expost/page/static/numbers.js";
import { factsOf } from "../../../src/expost/page/static/records.js";

const { numbers: packed, asked } = JSON.parse(readFileSync(0, "utf8"));
const numbers = unpacked(packed);
process.stdout.write(JSON.stringify(asked.map((answers) => factsOf(numbers, numbers.publications[0], answers).cell)));
