// The table of pairs.py as TypeScript's users have it: put into groups, or observed by them; KL of each column as JSON.
// usage: node pairs.mjs URL TABLE put|observe GROUP...
import { readFileSync } from "node:fs";
import { Client } from "kldiv";

const [url, file, verb, ...groups] = process.argv.slice(2);
const { columns } = JSON.parse(readFileSync(file, "utf8"));
const dates = (seconds) => seconds.map((each) => new Date(each * 1000));
const missing = [null, undefined, NaN];
const table = {
    ...columns,
    narrow: Float32Array.from(columns.narrow),
    tenths: Float64Array.from(columns.tenths),
    time: dates(columns.time),
    midnight: dates(columns.midnight),
    id: BigInt64Array.from(columns.id, BigInt),
    holes: columns.holes.map((cell, i) => cell ?? missing[i % 3]),
    gaps: columns.gaps.map((cell, i) => cell ?? missing[i % 2]),
};
const said = {};
for (const name of groups) {
    const group = new Client(url).group(name);
    if (verb === "put")
        await group.reference(table, { include: Object.keys(table).join() });
    else
        said[name] = Object.fromEntries((await group.observe(table)).monitors.map(({ name, kl }) => [name, kl]));
}
console.log(JSON.stringify(said));
