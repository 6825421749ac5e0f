// Failures under the pages: answers that cannot be read, storage, a script that does not come.
import {refuseStorage, visiting} from "./browser.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, find, waitForText} from "./roles.mjs";
import {pageOf, shown} from "./monitor.mjs";
import {rowsOf} from "./overview.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {import("puppeteer-core").HTTPRequest} Request
 */

/** Haste of clocks here: 10 s, after which the page refreshes, are half a second. */
const HASTE = 20;

/** Answers that no page can use. */
const UNREADABLE = {
    "HTML": {status: 200, contentType: "text/html", body: "<html>"},
    "JSON that is cut off": {status: 200, contentType: "application/json", body: '{"monitors":[{'},
    "a gateway's page": {status: 502, contentType: "text/html", body: "<html>Bad gateway"},
};

/**
 * Gives requests of a kind to `answer` until the function that it returns is called.
 * @param {Page} page
 * @param {(request: Request) => boolean} chosen
 * @param {(request: Request) => Promise<void>} answer
 */
async function intercept(page, chosen, answer) {
    let on = true;
    await page.setRequestInterception(true);
    page.on("request", request =>
        void (on && chosen(request) ? answer(request) : request.continue()));
    return () => {
        on = false;
    };
}

/** @param {Request} request */
function isCall(request) {
    return request.resourceType() === "fetch";
}

/** @param {Room} room */
async function checkUnreadable({browser, filled, report}) {
    for (const [what, answer] of Object.entries(UNREADABLE))
        await report.check(`${what} instead of an answer: told, and it recovers`, () =>
            visiting(browser, "about:blank", {haste: HASTE, expected: [/502/]}, async visit => {
                const {page} = visit;
                visit.origin = filled.url;
                const spoil = await intercept(page, isCall, request => request.respond(answer));
                await page.goto(`${filled.url}/dashboard/`);
                const [told] = await waitForText(page, /The server gives no numbers: .*/);
                spoil();
                await rowsOf(page);
                await page.waitForFunction(() => !/gives no numbers/.test(document.body.innerText));
                return told;
            }));
    await report.check("answers that become unreadable: the numbers stay, on a monitor's page", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {haste: HASTE}, async visit => {
            const {page} = visit;
            await shown(page);
            const spoil = await intercept(page, isCall, request =>
                request.respond(UNREADABLE["JSON that is cut off"]));
            const [told] = await waitForText(page, /The server gives no numbers: .*/);
            await find(page, "heading", /Contributions/);
            spoil();
            await page.waitForFunction(() => !/gives no numbers/.test(document.body.innerText));
            return told;
        }));
    await report.check("an unreadable answer to the calculator is told, and it recovers", () =>
        visiting(browser, "about:blank", {}, async visit => {
            const {page} = visit;
            visit.origin = filled.url;
            const spoil = await intercept(page, isCall, request =>
                request.respond(UNREADABLE.HTML));
            await page.goto(`${filled.url}/`);
            const [told] = await waitForText(page, /.*cannot be read.*/);
            spoil();
            await click(page, "button", /try again/i);
            await page.waitForSelector("main data");
            return told;
        }));
}

/** @param {Room} room */
async function checkStorage({browser, filled, report}) {
    const open = (/** @type {string} */ path,
                  /** @type {(page: Page) => Promise<void>} */ body) =>
        visiting(browser, "about:blank", {}, async visit => {
            visit.origin = filled.url;
            await refuseStorage(visit.page);
            await visit.page.goto(filled.url + path);
            await body(visit.page);
        });
    await report.check("storage that is refused: the dashboard works, a theme holds for the page", () =>
        open("/dashboard/", async page => {
            await rowsOf(page);
            await page.select("select[aria-label=Theme]", "dark");
            expectSame(await page.evaluate(() => document.documentElement.dataset.theme), "dark",
                       "theme");
            await click(page, "link", "latency");
            await shown(page);
        }));
    await report.check("storage that is refused: the calculator works", () =>
        open("/", async page => {
            await page.waitForSelector("main data");
            await click(page, "button", "Swap");
            await page.waitForFunction(() => location.hash.length > 1);
            await page.waitForSelector("main [aria-busy=false] data");
        }));
}

/** @param {Room} room */
async function checkPlot({browser, filled, report}) {
    await report.check("a chart's script that fails once is told, and comes with the next refresh", () =>
        visiting(browser, "about:blank", {haste: HASTE, expected: [/uplot/, /ERR_FAILED/]},
                 async visit => {
            const {page} = visit;
            visit.origin = filled.url;
            const spoil = await intercept(page, request => request.url().includes("uplot.js"),
                                          request => request.abort());
            await page.goto(pageOf(filled.url, "shifted", "income"));
            const [told] = await waitForText(page, /Offline: .*|.*gives no numbers.*/);
            spoil();
            await shown(page);
            const size = await page.$eval(".chart canvas", canvas =>
                canvas.getBoundingClientRect().width);
            expect(size > 100, `the chart is ${size} px wide`);
            await page.waitForFunction(() => !/Offline/.test(document.body.innerText));
            return told;
        }));
}

/** @param {Room} room */
export async function checkFailures(room) {
    await checkUnreadable(room);
    await checkStorage(room);
    await checkPlot(room);
}
