// Tips and long names: they do not widen a page, and Escape closes a tip.
import {Api, monitorPath} from "./api.mjs";
import {auditWidth} from "./audit.mjs";
import {visiting} from "./browser.mjs";
import {twoLabels} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {pageOf, shown} from "./monitor.mjs";
import {rowsOf} from "./overview.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/** The longest name that the API takes, in which no line breaks. */
const LONG = "x".repeat(128);

/**
 * Odd monitors by name: what they are of, what has come, and what their page must say of it.
 * @type {Record<string, {told: string, bins: object, reference: number[], observed?: object, says: RegExp}>}
 */
const ODD = {
    labels: {told: "a label of 200 characters, and one from right to left", says: /عربي طويل جدا/,
             bins: {labels: ["x".repeat(200), "عربي طويل جدا", "short"]}, reference: [100, 100, 100],
             observed: {counts: [300, 10, 50]}},
    silent: {told: "a monitor without any history", says: /has received no values yet/,
             bins: {edges: [0, 1, 2, 3]}, reference: [100, 200, 100]},
    missing: {told: "values that are all missing", says: /missing 0 % → 100 %/,
              bins: {edges: [0, 1, 2, 3]}, reference: [100, 200, 100], observed: {counts: [0, 0, 0], missing: 200}},
    narrow: {told: "a bin of one value beside wide ones", says: /“?0”?: 50 % → 30 %/,
             bins: {edges: [0, 5e-324, 1e-9, 1, 10, 1e6]}, reference: [500, 1, 100, 300, 100],
             observed: {counts: [300, 1, 100, 300, 300]}},
};

/** A group of 100 columns, of which each ninth drifts. @param {Api} api */
async function watchWide(api) {
    const columns = (/** @type {number} */ shift) => ({columns: Object.fromEntries(
        Array.from({length: 100}, (_, i) => [`column_${i}_with_a_long_name`, Array.from({length: 300},
            (_, k) => ((k * (i + 3)) % 97) / 7 + (i % 9 === 0 ? shift : 0))]))});
    await api.put(monitorPath("wide"), columns(0));
    await api.post(monitorPath("wide", "observations"), columns(3));
}

/** Segments whose names begin alike. */
const SEGMENTS = ["Netherlands", "Switzerland"].map(country => `applications_for_consumer_credit[country=${country}]`);

const TERMS = "[aria-describedby]:has(+ [role=tooltip])";

/** Number of tips that are shown. @param {Page} page */
function tipsOf(page) {
    return page.$$eval("[role=tooltip]", all => all.filter(tip =>
        /** @type {HTMLElement} */ (tip).checkVisibility({visibilityProperty: true})).length);
}

/**
 * Gives each term the focus; fails if a tip is not shown, or lies outside the window, or widens the
 * document.
 * @param {Page} page
 */
async function auditTips(page) {
    const seen = await page.$$eval(TERMS, terms => terms.filter(each => each.checkVisibility())
        .map(each => {
            const term = /** @type {HTMLElement} */ (each);
            term.focus();
            const tip = document.getElementById(term.getAttribute("aria-describedby") ?? "");
            const {left = 0, right = 0, height = 0} = tip?.getBoundingClientRect() ?? {};
            const root = document.documentElement;
            const fits = height > 0 && left >= 0 && right <= root.clientWidth &&
                root.scrollWidth <= root.clientWidth;
            return {name: term.textContent, fits, told: `${left} to ${right}, ${root.scrollWidth}`};
        }));
    expect(seen.length > 0, "no terms");
    const out = seen.filter(({fits}) => !fits);
    expect(out.length === 0, out.map(({name, told}) => `${name}: ${told}`).join("; "));
    await auditWidth(page);
    return seen.length;
}

/** @param {Page} page */
async function auditEscape(page) {
    expectSame(await tipsOf(page), 1, "tips of the focus");
    await page.keyboard.press("Escape");
    expectSame(await tipsOf(page), 0, "tips of the focus after Escape");
}

/** @param {Room} room */
export async function checkWidths({binary, browser, filled, report}) {
    for (const width of [320, 1280])
        await report.check(`tips of a monitor's page at ${width} px`, () =>
            visiting(browser, pageOf(filled.url, "shifted", "income"), {width}, async ({page}) => {
                await shown(page);
                await page.evaluate(() => document.querySelectorAll("details").forEach(each => {
                    each.open = true;
                }));
                const n = await auditTips(page);
                await auditEscape(page);
                return `${n} tips`;
            }));
    await report.check("tips of the overview, which has heads where it is wide", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            const n = await auditTips(page);
            await auditEscape(page);
            return `${n} tips`;
        }));
    await report.check("Escape closes a tip under the pointer, with the focus elsewhere", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            await page.hover(`dt ${TERMS}`);
            expectSame(await tipsOf(page), 1, "tips under the pointer");
            await page.keyboard.press("Escape");
            expectSame(await tipsOf(page), 0, "tips under the pointer after Escape");
        }));
    const server = await startServer(binary);
    await twoLabels(new Api(server.url), LONG, LONG, [190, 10]);
    for (const width of [320, 1280])
        await report.check(`a name and a group of 128 bytes at ${width} px`, () =>
            visiting(browser, pageOf(server.url, LONG, LONG), {width}, async ({page}) => {
                await shown(page);
                const there = await auditWidth(page);
                await page.goto(`${server.url}/dashboard/`);
                await rowsOf(page);
                return `${there}; the overview ${await auditWidth(page)}`;
            }));
    const api = new Api(server.url);
    for (const [name, {bins, reference, observed}] of Object.entries(ODD)) {
        await api.put(monitorPath("odd", name), {bins, reference: {counts: reference}});
        if (observed)
            await api.post(monitorPath("odd", name, "observations"), observed);
    }
    await watchWide(api);
    for (const width of [320, 1280]) {
        for (const [name, {told, says}] of Object.entries(ODD))
            await report.check(`${told}, at ${width} px`, () =>
                visiting(browser, pageOf(server.url, "odd", name), {width, expected: [/404/]}, async visit => {
                    const seen = await waitForText(visit.page, says);
                    await visit.picture(`odd-${name}-${width}`, true);
                    return `${await auditWidth(visit.page)}: ${seen[0]}`;
                }));
        await report.check(`a group of 100 columns, at ${width} px`, () =>
            visiting(browser, `${server.url}/dashboard/?group=wide`, {width}, async visit => {
                await waitForText(visit.page, /12 of 100 monitors drift/);
                await visit.picture(`odd-columns-${width}`, true);
                return auditWidth(visit.page);
            }));
    }
    for (const segment of SEGMENTS)
        await twoLabels(new Api(server.url), segment, "age", [190, 10]);
    await report.check("names of segments are cut where they are alike, and seen where they differ", () =>
        visiting(browser, `${server.url}/dashboard/?q=applications`, {width: 1440}, async ({page}) => {
            await rowsOf(page);
            const cut = await page.$$eval(".one-line", lines => lines.map(({children: [head, tail]}) => ({
                tail: tail.textContent, isWhole: tail.scrollWidth <= tail.clientWidth && tail.clientWidth > 0, isCut: head.scrollWidth > head.clientWidth})));
            expectSame(new Set(cut.map(({tail}) => tail)).size, SEGMENTS.length, "different ends");
            expect(cut.every(({isWhole}) => isWhole) && cut.some(({isCut}) => isCut), JSON.stringify(cut));
            await page.setViewport({width: 390, height: 900});
            await page.goto(`${server.url}/dashboard/?events&group=${encodeURIComponent(SEGMENTS[0])}`);
            await waitForText(page, /Netherlands/);
            return auditWidth(page);
        }));
    await server.stop();
}
