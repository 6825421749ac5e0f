// Refreshes of a monitor's page: what the reader is at, and has opened, must stay.
import {visiting} from "./browser.mjs";
import {expect, expectSame} from "./report.mjs";
import {click} from "./roles.mjs";
import {pageOf, shown} from "./monitor.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/**
 * Loads the view again, as its clock would, without moving the focus.
 * @param {Page} page
 */
async function refresh(page) {
    const answered = page.waitForResponse(answer => /\/windows\?/.test(answer.url()));
    await page.evaluate(() => [...document.querySelectorAll("button")]
        .find(button => button.textContent === "Refresh")?.click());
    await answered;
    await page.waitForNetworkIdle({idleTime: 100});
}

/** Selectors of what a reader may be at when the page refreshes. */
const HELD = {
    "a range": "[aria-label='Time range'] button:nth-child(3)",
    "a window of the table": "[aria-label=Windows] tbody button",
    "the link to JSON": "a[download]",
    "a number": "dt [aria-describedby]",
    "the bins": "[aria-label=Contributions]",
    "a button that copies": ".command button",
};

/** @param {Room} room */
export async function checkHeld({browser, filled, report}) {
    await report.check("a refresh keeps the focus", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            await page.evaluate(() => document.querySelectorAll("details").forEach(each => {
                each.open = true;
            }));
            /** @type {string[]} */
            const lost = [];
            for (const [what, selector] of Object.entries(HELD)) {
                await page.focus(selector);
                await refresh(page);
                const held = await page.evaluate(path =>
                    document.activeElement?.matches(path), selector);
                if (!held) lost.push(what);
            }
            expect(lost.length === 0, `lost on ${lost.join(", ")}`);
        }));
    await report.check("a refresh keeps what the reader has opened", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            await click(page, "button", /^All \d+ bins/);
            const rows = () =>
                page.$$eval("[aria-label=Contributions] tbody tr", all => all.length);
            const opened = await rows();
            await refresh(page);
            expectSame(await rows(), opened, "bins in the table");
        }));
    await report.check("a choice of range keeps the focus", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            await click(page, "button", "7 days");
            await page.waitForNetworkIdle({idleTime: 200});
            const name = await page.evaluate(() =>
                document.activeElement?.textContent?.slice(0, 20));
            expectSame(name, "7 days", "focus");
        }));
}
