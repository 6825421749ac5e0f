// The dashboard by keyboard alone: each stop of Tab is seen, and leads where its name says.
import {visiting} from "./browser.mjs";
import {expect, expectSame} from "./report.mjs";
import {find, focused, waitForText} from "./roles.mjs";
import {rowsOf} from "./overview.mjs";
import {shown} from "./monitor.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

const MOST_STOPS = 70;

/** True if what has the focus is marked, and lies in the window. @param {Page} page */
function isFocusSeen(page) {
    return page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return false;
        const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(element);
        const {top, bottom, width, height} = element.getBoundingClientRect();
        const marked = (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) ||
            boxShadow !== "none";
        return marked && width > 0 && height > 0 && bottom > 0 && top < innerHeight;
    });
}

/**
 * Presses Tab until the focus is on a name.
 * @param {Page} page
 * @param {string} name
 */
async function tabTo(page, name) {
    /** @type {string[]} */
    const stops = [];
    while (stops.length < MOST_STOPS) {
        await page.keyboard.press("Tab");
        const node = await focused(page);
        stops.push(node?.name ?? "");
        expect(await isFocusSeen(page), `the focus is not seen on ${JSON.stringify(node?.name)}`);
        if (node?.name === name) return stops;
    }
    throw new Error(`${name} is not reached: ${stops.join(", ")}`);
}

/** @param {Room} room */
export async function checkKeyboard({browser, filled, report}) {
    const url = `${filled.url}/dashboard/`;
    await report.check("Tab first reaches a link that skips to the content", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            await page.keyboard.press("Tab");
            expect(await isFocusSeen(page), "the link is not seen");
            const link = await focused(page);
            expect(/skip/i.test(link?.name ?? ""), `focus: ${link?.name}`);
            await page.keyboard.press("Enter");
            await page.keyboard.press("Tab");
            const inside = await page.evaluate(() =>
                document.activeElement?.closest("main") !== null);
            expect(inside, "Tab from there does not enter the content");
            return link?.name;
        }));
    await report.check("Tab reaches the worst monitor, Enter opens it, and the focus follows", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            const stops = await tabTo(page, "unseen");
            await page.keyboard.press("Enter");
            await shown(page);
            await find(page, "heading", "unseen");
            const inside = await page.evaluate(() => document.activeElement?.closest("main")?.id);
            expectSame(inside, "main", "focus in the new view");
            return `${stops.length} stops`;
        }));
    await report.check("every stop of a monitor's page is seen", () =>
        visiting(browser, `${url}?group=shifted&monitor=income`, {}, async ({page}) => {
            await shown(page);
            const stops = await tabTo(page, "Licences");
            return `${stops.length} stops`;
        }));    await report.check("/ goes to the search, j and k from monitor to monitor, ? lists the keys", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            const at = () => page.evaluate(() => document.activeElement?.getAttribute("type") ??
                document.activeElement?.textContent ?? "");
            for (let i = 0; i < 2; i++) await page.keyboard.press("j");
            const second = await at();
            await page.keyboard.press("k");
            const first = await at();
            const names = await page.$$eval("main a.monitor", links => links.slice(0, 2).map(each => each.textContent));
            expectSame([first, second].join(), names.join(), "monitors that have the focus");
            await page.keyboard.press("?");
            await waitForText(page, /the next monitor/);
            await page.keyboard.press("Escape");
            await page.keyboard.press("/");
            expectSame(await at(), "search", "focus after /");
            await page.keyboard.type("j?");
            expectSame(await page.$eval("main input[type=search]", each => /** @type {HTMLInputElement} */ (each).value), "j?",
                       "keys in a text");
        }));
    await report.check("changes of state are chosen by the state", () =>
        visiting(browser, `${url}?events`, {}, async ({page}) => {
            await waitForText(page, /→\s*critical/);
            await page.select("#to", "ok");
            await page.waitForFunction(() => location.search.includes("to_state=ok") &&
                ![...document.querySelectorAll("main .feed li")].some(each => /→\s*(critical|warning)/.test(each.textContent ?? "")));
        }));
}
