// A thousand monitors, and what the pages weigh.
import {Api} from "./api.mjs";
import {auditAccess} from "./audit.mjs";
import {visiting} from "./browser.mjs";
import {elevenHundred, thousandMonitors} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {rowsOf} from "./overview.mjs";
import {pageOf, shown} from "./monitor.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/** Bytes of all files of the pages together, compressed, Swagger UI apart. */
const MOST_BYTES = 90000;

/** Elements of the overview of a thousand monitors. */
const MOST_NODES = 3000;

/** A frame of 60 in a second that came late by a fifth, milliseconds. */
const LATE_MS = 20;

/**
 * Scrolls in steps of 120 pixels, one a frame, and measures the frames.
 * @param {Page} page
 * @returns {Promise<number[]>}  milliseconds of each
 */
function scrollThrough(page) {
    return page.evaluate(() => new Promise(resolve => {
        /** @type {number[]} */
        const times = [];
        let last = performance.now();
        const step = () => {
            const now = performance.now();
            times.push(now - last);
            last = now;
            const before = scrollY;
            scrollBy(0, 120);
            if (scrollY === before || times.length >= 150) resolve(times.slice(1));
            else requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
    }));
}

/**
 * Median of the frames, and how many came late.
 * @param {number[]} times
 */
function describeFrames(times) {
    const sorted = [...times].sort((a, b) => a - b);
    const late = sorted.filter(time => time > LATE_MS).length / sorted.length;
    return `${sorted.length} frames, median ${sorted[sorted.length >> 1].toFixed(1)} ms, ` +
        `${(100 * late).toFixed(1)} % above ${LATE_MS} ms`;
}

/** Makes the page one of plain lines: what the machine can scroll at most. @param {Page} page */
function showLines(page) {
    return page.evaluate(() => {
        document.body.replaceChildren(...Array.from({length: 2000}, (_, i) => {
            const line = document.createElement("p");
            line.textContent = `line ${i}`;
            return line;
        }));
        scrollTo(0, 0);
    });
}

/** @param {Room} room */
async function checkThousand({binary, browser, report}) {
    const server = await startServer(binary);
    await thousandMonitors(new Api(server.url));
    await report.check("a thousand monitors: the rows, and the frames while they scroll", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async visit => {
            const {page} = visit;
            const began = Date.now();
            expectSame((await rowsOf(page)).length, 50, "rows at first");
            const ready = Date.now() - began;
            const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
            expect(nodes <= MOST_NODES, `${nodes} elements`);
            await click(page, "button", "Load more");
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 151);
            const times = await scrollThrough(page);
            await visit.picture("1000-monitors-light");
            await showLines(page);
            return `rows after ${ready} ms, ${nodes} elements; ${describeFrames(times)}; ` +
                `plain lines: ${describeFrames(await scrollThrough(page))}`;
        }));
    await report.check("a search among a thousand", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            const began = Date.now();
            await fill(page, /search/i, "sensor 77");
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 11);
            const took = Date.now() - began;
            await auditAccess(page);
            return `${took} ms with the keys`;
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkMany({binary, browser, report}) {
    const server = await startServer(binary);
    await elevenHundred(new Api(server.url));
    await report.check("more than a thousand monitors: the sentence says so, a state finds the rest", () =>
        visiting(browser, `${server.url}/dashboard/?state=ok`, {}, async ({page}) => {
            const rows = await rowsOf(page);
            expectSame(rows.length, 50, "rows that are ok");
            expect(rows.every(row => /ok/.test(row) && !/critical/.test(row)), rows[0]);
            return (await waitForText(page, /1,050 critical of 1,100 monitors.*/))[0];
        }));
    await server.stop();
}

/**
 * Bytes that a page has loaded, without headers, by the names of the files.
 * @param {Page} page
 * @returns {Promise<Record<string, number>>}
 */
function weigh(page) {
    return page.evaluate(() => {
        const all = /** @type {PerformanceResourceTiming[]} */ (
            [...performance.getEntriesByType("navigation"),
             ...performance.getEntriesByType("resource")]);
        return Object.fromEntries(all.filter(({initiatorType}) => initiatorType !== "fetch")
            .map(({name, encodedBodySize}) => [new URL(name).pathname, encodedBodySize]));
    });
}

/** @param {Room} room */
async function checkWeight({browser, filled, report}) {
    await report.check(`all files of the pages are less than ${MOST_BYTES} bytes, compressed`, () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            const sizes = await weigh(page);
            const first = Object.values(sizes).reduce((sum, size) => sum + size, 0);
            for (const url of [pageOf(filled.url, "shifted", "income"),
                               `${filled.url}/dashboard/?add`, `${filled.url}/`]) {
                await page.goto(url);
                if (url.includes("monitor=")) await shown(page);
                await page.waitForNetworkIdle({idleTime: 200});
                for (const [name, size] of Object.entries(await weigh(page)))
                    sizes[name] = Math.max(sizes[name] ?? 0, size);
            }
            const sum = Object.values(sizes).reduce((total, size) => total + size, 0);
            const seen = `${sum} bytes of ${Object.keys(sizes).length} files; ` +
                `the overview ${first}`;
            expect(sum < MOST_BYTES, seen);
            return seen;
        }));
}

/** @param {Room} room */
export async function checkCrowd(room) {
    await checkThousand(room);
    await checkMany(room);
    await checkWeight(room);
}
