// Causes over time: a day without most of its rows, then two labels that are new one after the other, then a new reference.
import {Api, monitorPath} from "./api.mjs";
import {visiting} from "./browser.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, clickMenu, fill, find, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {pageOf, shown} from "./monitor.mjs";

/** @typedef {import("puppeteer-core").Page} Page */

const DAY_MS = 86_400_000;
const ROWS = 300;
const DAYS = 16;

/** Midnight before the last windows, which have all ended. */
const BEGIN = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAYS * DAY_MS;

/** The day without most of its rows, and those from which a label is new. */
const MISSING = 9, FIRST = 13, SECOND = 15;

/** Labels of the last day. */
const LAST = ["x", "y", "late", "late"];

/**
 * A table of one day: columns a, b, which never drift, and c.
 * @param {number} n
 * @param {string[]} labels of c
 */
function table(n, labels) {
    const rows = Array.from({length: n}, (_, i) => `${i % 7},${i % 5},${labels[i % labels.length]}`);
    return ["a,b,c", ...rows, ""].join("\n");
}

/** @param {Api} api */
async function watch(api) {
    const usual = LAST.slice(0, 2);
    await api.put(`${monitorPath("shop")}?window=1d&volume=2,4&pool=1&method=labels`, table(1000, usual));
    for (let day = 0; day < DAYS; day++) {
        const labels = day >= SECOND ? LAST : day >= FIRST ? [...usual, "early"] : usual;
        const at = new Date(BEGIN + day * DAY_MS).toISOString();
        await api.post(`${monitorPath("shop", "observations")}?timestamp=${at}`, table(day === MISSING ? ROWS / 10 : ROWS, labels));
    }
}

/** @param {Page} page */
async function textOf(page) {
    return (await page.$eval("main", main => /** @type {HTMLElement} */ (main).innerText)).replace(/[\u2066-\u2069]/g, "");
}

/** @param {import("./run.mjs").Room} room */
export async function checkCauses({binary, browser, report}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    await watch(api);
    await report.check("a day without rows is one entry of events, with its cause; entries are searched", () =>
        visiting(browser, `${server.url}/dashboard/?events`, {zone: "UTC", height: 2000}, async ({page}) => {
            await waitForText(page, /rows: 300 → 30, a tenth of usual/);
            const entries = await page.$$eval(".feed > li", all => all.map(each => /** @type {HTMLElement} */ (each).innerText)
                .filter(text => /shop \/ 3 monitors.*rows:/s.test(text)));
            expectSame(entries.length, 1, "entries of the fall");
            expect(!/KL/.test(entries[0]), entries[0]);
            await fill(page, "Group or monitor", "shop / c");
            await page.waitForFunction(() => [...document.querySelectorAll(".feed > li")].every(each => /shop \/ c/.test(each.textContent ?? "")));
            return entries[0].replace(/\s+/g, " ");
        }));
    await report.check("what began an alarm is told beside what is wrong now; chart and bars tell of one window", () =>
        visiting(browser, pageOf(server.url, "shop", "c"), {zone: "UTC"}, async ({page}) => {
            await shown(page);
            const [told] = await waitForText(page, /When it became critical: .*early[^\n]*\n+Now: .*late[^\n]*/);
            const [, span] = /The latest window: (.*)\./.exec(await textOf(page)) ?? [];
            const readout = await page.$eval(".readout", each => each.textContent ?? "");
            expect(Boolean(span) && readout.startsWith(span), `${span}; ${readout}`);
            return told.replace(/\s+/g, " ");
        }));
    await report.check("a window that its number of rows decided says so", () =>
        visiting(browser, `${pageOf(server.url, "shop", "a")}&window=${MISSING + 1}`, {zone: "UTC"}, async ({page}) => {
            await shown(page);
            await waitForText(page, /critical: rows: 300 → 30, a tenth of usual\. The number of rows is critical/);
            await page.$eval("details", each => { each.open = true; });
            await waitForText(page, /by the number of rows, usually 300/);
        }));
    await report.check("a new reference is seen before it is taken, and before its first window", () =>
        visiting(browser, pageOf(server.url, "shop", "c"), {zone: "UTC", expected: [/404/]}, async ({page}) => {
            await shown(page);
            await clickMenu(page, "New reference …");
            const [, seen] = await waitForText(page, /The new reference has 900 values.* The latest window then has KL ([\d.]+) nats/);
            await click(page, "button", "Take it as the reference");
            const [told] = await waitForText(page, /The new reference, of 900 values/);
            await find(page, "group", /^reference, bin by bin/);
            const {monitors} = await api.post(monitorPath("shop", "evaluate"), table(ROWS, LAST));
            const {kl} = monitors.find((/** @type {any} */ {name}) => name === "c");
            expectSame(seen, String(Number(kl.toPrecision(3))), "KL of the latest window's rows from the new reference");
            return `${told}, KL ${seen}`;
        }));
    await server.stop();
}
