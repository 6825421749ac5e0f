// Tests of the pages, in Chromium against a server that runs.
// usage: node run.mjs KLDIVD [SUITE...]
import {resolve} from "node:path";
import {checkAddresses} from "./addresses.mjs";
import {startBrowser} from "./browser.mjs";
import {checkFixtures} from "./states.mjs";
import {Report} from "./report.mjs";

/**
 * @typedef {object} Room  what suites work with
 * @property {string} binary  path of kldivd
 * @property {import("puppeteer-core").Browser} browser
 * @property {Report} report
 */

/** @type {Record<string, (room: Room) => Promise<void>>} */
const suites = {fixtures: checkFixtures, addresses: checkAddresses};

const [binary, ...chosen] = process.argv.slice(2);
if (!binary || chosen.some(name => !(name in suites))) {
    console.error(`usage: node run.mjs KLDIVD [${Object.keys(suites).join(" | ")}]...`);
    process.exit(2);
}

const report = new Report();
const browser = await startBrowser();
for (const [name, suite] of Object.entries(suites)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    console.log(`\n${name}`);
    try {
        await suite({binary: resolve(binary), browser, report});
    } catch (error) {
        await report.check(`${name} to its end`, () => { throw error; });
    }
}
await browser.close();
process.exitCode = report.end();
