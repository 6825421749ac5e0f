// Tips and long names: they do not widen a page, and Escape closes a tip.
import {Api, monitorPath} from "./api.mjs";
import {auditWidth} from "./audit.mjs";
import {visiting} from "./browser.mjs";
import {twoLabels} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {startServer} from "./server.mjs";
import {pageOf, shown} from "./monitor.mjs";
import {rowsOf} from "./overview.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/** The longest name that the API takes, in which no line breaks. */
const LONG = "x".repeat(128);

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
    const path = monitorPath("labels", "long");
    await new Api(server.url).put(path, {bins: {labels: ["x".repeat(200), "عربي طويل جدا", "short"]},
                                         reference: {counts: [100, 100, 100]}});
    await new Api(server.url).post(`${path}/observations`, {counts: [300, 10, 50]});
    for (const width of [320, 1280])
        await report.check(`a label of 200 characters, and one from right to left, at ${width} px`, () =>
            visiting(browser, pageOf(server.url, "labels", "long"), {width}, async visit => {
                await shown(visit.page);
                await visit.picture(`labels-${width}`, true);
                return auditWidth(visit.page);
            }));
    await server.stop();
}
