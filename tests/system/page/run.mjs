// Tests of the pages, in Chromium against a server that runs.
// usage: node run.mjs KLDIVD [SUITE...]
import {resolve} from "node:path";
import {checkAccess} from "./access.mjs";
import {checkActions} from "./actions.mjs";
import {checkAddresses} from "./addresses.mjs";
import {Api} from "./api.mjs";
import {checkCalculator} from "./calculator.mjs";
import {startBrowser} from "./browser.mjs";
import {checkDocs} from "./docs.mjs";
import {startServer} from "./server.mjs";
import {checkFixtures} from "./states.mjs";
import {checkCauses} from "./causes.mjs";
import {checkCrowd} from "./crowd.mjs";
import {fillAll} from "./fixtures.mjs";
import {checkFailures} from "./failures.mjs";
import {checkFreshness} from "./freshness.mjs";
import {checkHeld} from "./held.mjs";
import {checkIncidents} from "./incidents.mjs";
import {checkJourney} from "./journey.mjs";
import {checkKeyboard} from "./keyboard.mjs";
import {checkLooks} from "./looks.mjs";
import {checkMonitor} from "./monitor.mjs";
import {checkOverview} from "./overview.mjs";
import {checkParsing} from "./parsing.mjs";
import {Report} from "./report.mjs";
import {checkWidths} from "./widths.mjs";

/**
 * @typedef {object} Room  what suites work with
 * @property {string} binary  path of kldivd
 * @property {import("puppeteer-core").Browser} browser
 * @property {Pick<Report, "check">} report  of the suite
 * @property {Api} filled  a server with all fixtures, for those who only look at it
 */

/** @type {Record<string, (room: Room) => Promise<void>>} */
const suites = {
    fixtures: checkFixtures,
    addresses: checkAddresses,
    docs: checkDocs,
    overview: checkOverview,
    freshness: checkFreshness,
    failures: checkFailures,
    monitor: checkMonitor,
    held: checkHeld,
    incidents: checkIncidents,
    causes: checkCauses,
    keyboard: checkKeyboard,
    looks: checkLooks,
    widths: checkWidths,
    access: checkAccess,
    journey: checkJourney,
    actions: checkActions,
    parsing: checkParsing,
    calculator: checkCalculator,
    crowd: checkCrowd,
};

const [binary, ...chosen] = process.argv.slice(2);
if (!binary || chosen.some(name => !(name in suites))) {
    console.error(`usage: node run.mjs KLDIVD [${Object.keys(suites).join(" | ")}]...`);
    process.exit(2);
}

const BROWSERS = 2;

const report = new Report();
const server = await startServer(resolve(binary));
const filled = new Api(server.url);
const names = Object.keys(suites).filter(name => chosen.length === 0 || chosen.includes(name));

/**
 * Runs suites in a browser of its own until none is left.
 * @param {string[]} left
 */
async function runSuites(left) {
    const browser = await startBrowser();
    for (let name = left.shift(); name; name = left.shift()) {
        const part = report.of(name);
        try {
            await suites[name]({binary: resolve(binary), browser, report: part, filled});
        } catch (error) {
            await part.check("to its end", () => { throw error; });
        }
    }
    await browser.close();
}

await fillAll(filled);
const together = names.filter(name => name !== "crowd"); // which measures time
await Promise.all(Array.from({length: BROWSERS}, () => runSuites(together)));
await runSuites(names.filter(name => name === "crowd"));
await report.check("the server ends with status 0", () => server.stop());
process.exitCode = report.end();
