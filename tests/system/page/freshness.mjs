// Freshness of what is shown: loading, refreshed, paused, hidden, stale, offline, not changed.
import {setTimeout as sleep} from "node:timers/promises";
import {Api, monitorPath} from "./api.mjs";
import {visiting} from "./browser.mjs";
import {postMinutes, twoLabels} from "./fixtures.mjs";
import {pageOf, shown} from "./monitor.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, find, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {rowsOf} from "./overview.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {import("./browser.mjs").Visit} Visit
 */

/** Haste of clocks here: 10 s, after which the page refreshes, are half a second. */
const HASTE = 20;
const ROUND_MS = 10_000 / HASTE;

/**
 * Calls that the page makes in so many rounds of its refresh.
 * @param {Visit} visit
 * @param {number} rounds
 */
async function callsIn(visit, rounds) {
    const before = visit.calls().length;
    await sleep(rounds * ROUND_MS);
    return visit.calls().length - before;
}

/**
 * Tells the page that its tab is hidden or seen, as a browser does.
 * @param {Page} page
 * @param {boolean} hidden
 */
function hide(page, hidden) {
    return page.evaluate(value => {
        Object.defineProperty(document, "hidden", {configurable: true, get: () => value});
        Object.defineProperty(document, "visibilityState",
                              {configurable: true, get: () => value ? "hidden" : "visible"});
        document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
}

/** @param {Room} room */
async function checkLoading({browser, filled, report}) {
    await report.check("loading is told while the API has not answered", () =>
        visiting(browser, "about:blank", {}, async visit => {
            const {page} = visit;
            visit.origin = filled.url;
            await page.setRequestInterception(true);
            /** @type {import("puppeteer-core").HTTPRequest[]} */
            const held = [];
            page.on("request", request => {
                if (request.resourceType() === "fetch") held.push(request);
                else request.continue();
            });
            await page.goto(`${filled.url}/dashboard/`);
            const [text] = await waitForText(page, /Loading.*/);
            const busy = await page.$eval("main", main => main.getAttribute("aria-busy"));
            expectSame(busy, "true", "aria-busy of main");
            for (const request of held) await request.continue();
            await rowsOf(page);
            const idle = await page.$eval("main", main => main.getAttribute("aria-busy"));
            expectSame(idle ?? "false", "false", "aria-busy of main, loaded");
            return text;
        }));
    await report.check("the first paint of the overview needs four requests: groups, monitors, and what fails", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async visit => {
            await rowsOf(visit.page);
            const calls = visit.calls().map(({url}) => url.pathname + url.search);
            expectSame(calls.length, 4, `requests (${calls.join(" ")})`);
            return calls.join(" ");
        }));
}

/** @param {Room} room */
async function checkRefresh({browser, filled, report}) {
    const url = `${filled.url}/dashboard/`;
    await report.check("it refreshes by itself, not while paused or hidden, and on request", () =>
        visiting(browser, url, {haste: HASTE}, async visit => {
            const {page} = visit;
            await rowsOf(page);
            const running = await callsIn(visit, 3.5);
            expect(running >= 8 && running <= 16, `${running} calls in 35 s, four each time`);
            await click(page, "button", /pause/i);
            expectSame(await callsIn(visit, 2), 0, "calls while paused");
            await click(page, "button", /^refresh/i);
            await sleep(300);
            expectSame(await callsIn(visit, 1), 0, "calls after one on request");
            await click(page, "button", /resume|continue/i);
            expect(await callsIn(visit, 2.5) > 0, "no calls after pause");
            await hide(page, true);
            await sleep(200);
            expectSame(await callsIn(visit, 2.5), 0, "calls while hidden");
            await hide(page, false);
            expect(await callsIn(visit, 1.5) > 0, "no calls once seen again");
        }));
    await report.check("numbers that grow old while paused are told to be stale", () =>
        visiting(browser, url, {haste: HASTE}, async ({page}) => {
            await rowsOf(page);
            await click(page, "button", /pause/i);
            return (await waitForText(page, /Stale: .*/))[0];
        }));
    await report.check("a row keeps focus and place when it is refreshed, and a minute older", () =>
        visiting(browser, url, {haste: 6 * HASTE}, async visit => {
            await rowsOf(visit.page);
            const link = await (await find(visit.page, "link", "income")).elementHandle();
            await link?.focus();
            const see = () => visit.page.evaluate(() => {
                const focused = document.activeElement;
                return {name: focused?.textContent?.trim().slice(0, 40), top: focused?.getBoundingClientRect().top};
            });
            await visit.page.evaluate(() => scrollTo(0, 200));
            const before = await see();
            await callsIn(visit, 3);
            const after = await see();
            expectSame(after.name, "income", "focus");
            // A relative time of another width may move a row by a fraction of a pixel.
            expect(Math.abs((after.top ?? NaN) - (before.top ?? NaN)) < 1, `place ${after.top}, before ${before.top}`);
        }));
}

/** Clicks "Refresh" without moving the focus. @param {Page} page */
function refresh(page) {
    return page.evaluate(() => [...document.querySelectorAll("button")]
        .find(button => button.textContent === "Refresh")?.click());
}

/** @param {Room} room */
async function checkChanged({binary, browser, report}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    await twoLabels(api, "pair", "steady", [100, 104]);
    await twoLabels(api, "pair", "moved", [102, 100]);
    await report.check("a row whose numbers and place change keeps the focus", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            const link = await (await find(page, "link", "moved")).elementHandle();
            await link?.focus();
            await postMinutes(api, monitorPath("pair", "moved"), 1, [[190, 10]]);
            await refresh(page);
            await page.waitForFunction(() => /critical/.test(
                document.querySelectorAll("[role=row]")[1]?.textContent ?? ""));
            const name = await page.evaluate(() => document.activeElement?.textContent);
            expectSame(name, "moved", "focus");
        }));
    await report.check("300 windows that came during a pause are all there after it", () =>
        visiting(browser, `${pageOf(server.url, "pair", "steady")}&range=all`, {zone: "UTC"},
                 async ({page}) => {
            await shown(page);
            await click(page, "button", "Pause");
            await postMinutes(api, monitorPath("pair", "steady"), 1,
                              Array.from({length: 300}, (_, i) => [100 + i % 7, 100]));
            await refresh(page);
            await page.evaluate(() => document.querySelectorAll("details").forEach(each => {
                each.open = true;
            }));
            await click(page, "button", "Show more of 301 windows");
            const shownEnds = await page.$$eval("[aria-label=Windows] tbody button", all =>
                all.map(each => each.textContent));
            const {windows} = await api.get(
                `${monitorPath("pair", "steady", "windows")}?limit=1000`);
            const ends = windows.map((/** @type {any} */ {window}) =>
                `${window.end.slice(0, 16).replace("T", " ")} UTC`);
            const missing = ends.filter((/** @type {string} */ end) => !shownEnds.includes(end));
            expect(missing.length === 0, `not there: ${missing.length}, as ${missing[0]}`);
            expectSame(shownEnds.length, ends.length, "windows");
            return `${ends.length} windows`;
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkOffline({browser, filled, report}) {
    await report.check("offline is told, the numbers stay, and it recovers", () =>
        visiting(browser, `${filled.url}/dashboard/`, {haste: HASTE, expected: [/./]},
                 async ({page}) => {
            const before = (await rowsOf(page)).length;
            await page.setOfflineMode(true);
            const [told] = await waitForText(page, /offline.*/i);
            expectSame((await rowsOf(page)).length, before, "rows while offline");
            await find(page, "status|alert");
            await page.setOfflineMode(false);
            await page.waitForFunction(() => !/offline/i.test(document.body.innerText));
            return told;
        }));
}

/** @param {Room} room */
async function checkUnchanged({browser, filled, report}) {
    await report.check("a reload transfers no file again: 304", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async visit => {
            await rowsOf(visit.page);
            const n = visit.requests.length;
            await visit.page.reload();
            await rowsOf(visit.page);
            const files = visit.requests.slice(n).filter(({type}) => type !== "fetch");
            const sent = files.filter(({status}) => status !== 304);
            expectSame(sent.map(({url}) => url.pathname).join(" "), "", "sent again");
            return `${files.length} files`;
        }));
}

/** @param {Room} room */
export async function checkFreshness(room) {
    await checkLoading(room);
    await checkRefresh(room);
    await checkChanged(room);
    await checkOffline(room);
    await checkUnchanged(room);
}
