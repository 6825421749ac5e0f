// The calculator: histograms and rows as people paste them, against the definition of KL.
import {execFileSync} from "node:child_process";
import {setTimeout as sleep} from "node:timers/promises";
import {visiting} from "./browser.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, find, handleOf, textOf, waitForText} from "./roles.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

const REFERENCE = [10, 20, 30, 40], CURRENT = [25, 5, 30, 40];

/** @param {number[]} values */
const sumOf = values => values.reduce((sum, each) => sum + each, 0);

/**
 * KL of counts in nats, by the definition; `a` is added to each.
 * @param {number[]} current
 * @param {number[]} reference
 */
function klOf(current, reference, a = 0) {
    const part = (/** @type {number[]} */ all, /** @type {number} */ i) =>
        (all[i] + a) / (sumOf(all) + a * all.length);
    return sumOf(current.map((_, i) => {
        const p = part(current, i), q = part(reference, i);
        return p > 0 ? p * Math.log(p / q) : 0;
    }));
}

/** Half of the last of six digits, relative: the page shows so many. */
const SHOWN = 5e-6;

/**
 * Waits until the page shows a number beside a unit.
 * @param {Page} page
 * @param {number} expected
 * @param {string} unit
 */
async function waitForKl(page, expected, unit = "nats") {
    for (const end = Date.now() + 8000; Date.now() < end; await sleep(50)) {
        const text = await textOf(page);
        const all = [...text.matchAll(/([\d.e-]+)\s+(nats|bits)/g)];
        const hit = all.find(found => found[2] === unit &&
            Math.abs(Number(found[1]) - expected) <= SHOWN * Math.abs(expected));
        if (hit) return hit[0];
    }
    throw new Error(`no ${expected} ${unit} in ${(await textOf(page)).slice(-600)}`);
}

/**
 * @param {Page} page
 * @param {string} reference
 * @param {string} current
 */
async function type(page, reference, current) {
    await fill(page, /^Reference/, reference);
    await fill(page, /^Current/, current);
}

/** The loss that the curl line of the page prints. @param {Page} page */
async function runCurl(page) {
    const [line] = await waitForText(page, /^curl .*kl_div.*$/m);
    const printed = execFileSync("sh", ["-c", `${line} --no-progress-meter --fail`]);
    return {line, loss: JSON.parse(printed.toString()).loss};
}

/** @param {Room} room */
async function checkHistograms({browser, filled, report}) {
    const url = `${filled.url}/`, kl = klOf(CURRENT, REFERENCE);
    await report.check("two histograms: KL is that of the definition, and of the curl line", () =>
        visiting(browser, url, {}, async ({page}) => {
            await type(page, REFERENCE.join(" "), CURRENT.join(" "));
            await waitForKl(page, kl);
            const {line, loss} = await runCurl(page);
            expect(Math.abs(loss - kl) <= 1e-12 * kl, `curl: ${loss}, definition: ${kl}`);
            return `${kl}, ${line}`;
        }));
    await report.check("its bins sum to it", () =>
        visiting(browser, url, {}, async ({page}) => {
            await type(page, REFERENCE.join(" "), CURRENT.join(" "));
            await waitForKl(page, kl);
            const rows = await page.$$eval("main table tbody tr", all => all.map(row =>
                [...row.children].map(cell => cell.textContent?.trim() ?? "")));
            const heads = await page.$$eval("main table thead th", all =>
                all.map(cell => cell.textContent));
            const at = heads.findIndex(head => /contribution/i.test(head ?? ""));
            const sum = sumOf(rows.map(row => Number(row[at])));
            expect(Math.abs(sum - kl) < 0.01 * kl, `sum ${sum}, KL ${kl}`);
            return `${rows.length} bins, ${sum}`;
        }));
}

/** @param {Room} room */
async function checkChoices({browser, filled, report}) {
    const url = `${filled.url}/`, kl = klOf(CURRENT, REFERENCE);
    await report.check("bits, and the curl line that gives them", () =>
        visiting(browser, url, {}, async ({page}) => {
            await (await handleOf(page, "combobox", /unit|base/i)).select("2");
            await type(page, REFERENCE.join(" "), CURRENT.join(" "));
            const seen = await waitForKl(page, kl / Math.LN2, "bits");
            const {loss} = await runCurl(page);
            expect(Math.abs(loss - kl / Math.LN2) <= 1e-12, `curl: ${loss}`);
            return seen;
        }));
    await report.check("smoothing by a pseudocount", () =>
        visiting(browser, url, {}, async ({page}) => {
            await type(page, "10 0 30", "5 5 30");
            await waitForText(page, /∞|infinite/i);
            await fill(page, /pseudocount|smoothing/i, "0.5");
            const seen = await waitForKl(page, klOf([5, 5, 30], [10, 0, 30], 0.5));
            const {loss} = await runCurl(page);
            const kl = klOf([5, 5, 30], [10, 0, 30], 0.5);
            expect(Math.abs(loss - kl) <= 1e-12 * kl, `${seen}, curl: ${loss}`);
            return seen;
        }));
}

/** @param {Room} room */
async function checkForms({browser, filled, report}) {
    const url = `${filled.url}/`;
    await report.check("rows: the mean of their KL, and each", () =>
        visiting(browser, url, {}, async ({page}) => {
            const rows = [[25, 5, 30, 40], [10, 20, 30, 40], [40, 30, 20, 10]];
            await type(page, REFERENCE.join("\t"), rows.map(row => row.join("\t")).join("\n"));
            const each = rows.map(row => klOf(row, REFERENCE));
            const seen = await waitForKl(page, sumOf(each) / 3);
            for (const kl of each.filter(Boolean))
                await waitForText(page, new RegExp(String(Number(kl.toPrecision(5))).slice(0, 6)));
            const {loss} = await runCurl(page);
            const mean = Array.isArray(loss) ? sumOf(loss) / 3 : loss;
            expect(Math.abs(mean - sumOf(each) / 3) <= 1e-12, `curl: ${loss}`);
            return seen;
        }));
    await report.check("probabilities and logits", () =>
        visiting(browser, url, {}, async ({page}) => {
            await (await handleOf(page, "combobox", /^The reference/i)).select("logit");
            await (await handleOf(page, "combobox", /^The current/i)).select("prob");
            await type(page, REFERENCE.map(Math.log).join(" "),
                       CURRENT.map(each => each / 100).join(" "));
            return waitForKl(page, klOf(CURRENT, REFERENCE));
        }));
    await report.check("JSON from the clipboard", () =>
        visiting(browser, url, {}, async ({page}) => {
            await page.browserContext().overridePermissions(
                filled.url, ["clipboard-read", "clipboard-sanitized-write"]);
            const body = {input: [0.1, 0.2, 0.3, 0.4], target: [0.25, 0.05, 0.3, 0.4],
                          input_space: "prob", target_space: "prob"};
            await page.evaluate(text => navigator.clipboard.writeText(text), JSON.stringify(body));
            await click(page, "button", /paste/i);
            return waitForKl(page, klOf(CURRENT, REFERENCE));
        }));
}

/** @param {Room} room */
async function checkTexts({browser, filled, report}) {
    const url = `${filled.url}/`;
    await report.check("labels with markup are shown as they are", () =>
        visiting(browser, url, {}, async visit => {
            const {page} = visit;
            page.on("dialog", dialog => visit.tell(`a script ran: ${dialog.message()}`));
            await type(page, "<script>alert(1)</script> 10\n<b>b</b> 20",
                       "<script>alert(1)</script> 20\n<b>b</b> 10");
            await waitForText(page, /<script>alert\(1\)<\/script>/);
            await waitForKl(page, klOf([20, 10], [10, 20]));
        }));
    await report.check("what cannot be read is told at its field", () =>
        visiting(browser, url, {}, async ({page}) => {
            await type(page, "1 2 3", "1 two 3");
            const [told] = await waitForText(page, /.*two.*/);
            const field = await handleOf(page, "textbox", /^Current/);
            const invalid = await field.evaluate(each => each.getAttribute("aria-invalid"));
            expectSame(invalid, "true", "aria-invalid of the field");
            await fill(page, /^Current/, "1 2");
            await waitForText(page, /3 bins[^]*2 bins|2 bins[^]*3 bins/);
            return told;
        }));
    await report.check("an example to begin with", () =>
        visiting(browser, url, {}, async ({page}) => {
            await click(page, "button", /example/i);
            await find(page, "table");
            return (await waitForText(page, /[\d.]+\s+nats/))[0];
        }));
}

/** @param {Room} room */
export async function checkCalculator(room) {
    await checkHistograms(room);
    await checkChoices(room);
    await checkForms(room);
    await checkTexts(room);
}
