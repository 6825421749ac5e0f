// The page of a monitor: what it says agrees with what the API says.
import {execFileSync} from "node:child_process";
import {monitorPath} from "./api.mjs";
import {visiting} from "./browser.mjs";
import {NAMED, NAMES, SCRIPT} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, find, findAll, textOf, waitForText} from "./roles.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/**
 * Address of the page of a monitor.
 * @param {string} root
 * @param {string} group
 * @param {string} monitor
 */
export function pageOf(root, group, monitor) {
    return `${root}/dashboard/?${new URLSearchParams({group, monitor})}`;
}

/** Waits until a monitor is shown. @param {Page} page */
export async function shown(page) {
    await find(page, "heading", /Contributions/);
}

/** @param {Room} room */
async function checkAnswer({browser, filled, report}) {
    await report.check("is anything wrong, since when, because of what", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            const path = monitorPath("shifted", "income", "windows", "latest");
            const {sentence, kl} = await filled.get(path);
            const text = await textOf(page);
            expect(/critical since \d{4}-\d\d-\d\d \d\d:\d\d/.test(text), "no state with its time");
            expect(text.includes(`KL ${Number(kl.toPrecision(3))} nats`), `no KL of ${kl}`);
            expect(sentence !== "" && text.includes(sentence), `not told: ${sentence}`);
            return sentence;
        }));
    await report.check("a monitor that is as it should be says so", () =>
        visiting(browser, pageOf(filled.url, "healthy", "age"), {}, async ({page}) => {
            await shown(page);
            return (await waitForText(page, /ok since .*\n+.*below the warning threshold.*/))[0];
        }));
    await report.check("insufficient data: how many values there are, and how many it takes", () =>
        visiting(browser, pageOf(filled.url, "few rows", "income"), {}, async ({page}) =>
            (await waitForText(page, /12 of 50 values/))[0]));
    await report.check("infinite KL: where the values are that the reference lacks", () =>
        visiting(browser, pageOf(filled.url, "infinite", "unseen"), {}, async ({page}) => {
            const [told] = await waitForText(page, /.*new.*10 %[^]*KL is infinite/);
            const shares = await page.$$eval("[aria-label=Contributions] tbody tr", rows =>
                rows.map(row => row.textContent ?? ""));
            const infinite = shares.filter(row => /∞/.test(row));
            expectSame(infinite.length, 1, "bins whose contribution or share is infinite");
            return told.replace(/\s+/g, " ");
        }));
    await report.check("a monitor that does not exist is told", () =>
        visiting(browser, pageOf(filled.url, "healthy", "nobody"), {expected: [/404/]},
                 async ({page}) => (await waitForText(page, /no such monitor/i))[0]));
}

/** The box that says how the monitor is. @param {Page} page */
function verdictOf(page) {
    return page.$eval("[aria-label=Verdict]", box => /** @type {HTMLElement} */ (box).innerText
        .replace(/, for [^\n]*/, "").trim());
}

/** @param {Room} room */
async function checkChosen({browser, filled, report}) {
    const url = pageOf(filled.url, "infinite", "unseen");
    await report.check("the verdict is that of the latest window, whatever window is looked at", () =>
        visiting(browser, url, {}, async ({page}) => {
            await shown(page);
            const verdict = await verdictOf(page);
            const path = monitorPath("infinite", "unseen", "windows");
            const {windows} = await filled.get(path);
            const oldest = windows.at(-1).window.id;
            await page.goto(`${url}&window=${oldest}`);
            await shown(page);
            expectSame(await verdictOf(page), verdict, "verdict beside the oldest window");
            await waitForText(page, /No bin differs|below the warning threshold/);
            await click(page, "button", "Show the latest window");
            await waitForText(page, /The latest window: /);
            expect(!page.url().includes("window="), `address: ${page.url()}`);
            expectSame((await findAll(page, "button", "Show the latest window")).length, 0,
                       "buttons that lead to the latest window");
            expectSame(await verdictOf(page), verdict, "verdict beside the latest window");
            return verdict.split("\n")[0];
        }));
    await report.check("a window that is not kept is told, and the verdict stays", () =>
        visiting(browser, `${url}&window=999999`, {expected: [/404/]}, async ({page}) => {
            const [told] = await waitForText(page, /There is no such window.*/);
            expect(/critical/.test(await verdictOf(page)), "no verdict");
            await click(page, "button", "Show the latest window");
            await waitForText(page, /The latest window: /);
            return told;
        }));
}

/** @param {Room} room */
async function checkBins({browser, filled, report}) {
    for (const [group, name] of [["single", "constant"], ["fine", "latency"], ["texts", "note"]])
        await report.check(`all bins of ${name} are in the table, with its numbers`, () =>
            visiting(browser, pageOf(filled.url, group, name), {}, async ({page}) => {
                await shown(page);
                const {bins} = await filled.get(monitorPath(group, name, "windows", "latest"));
                if ((await findAll(page, "button", /^All [\d,]+ bins/)).length > 0)
                    await click(page, "button", /^All [\d,]+ bins/);
                const rows = await page.$$eval("[aria-label=Contributions] tbody tr", all =>
                    all.map(row => [...row.children].map(cell => cell.textContent?.trim() ?? "")));
                expectSame(rows.length, bins.length, "rows");
                rows.slice(0, 20).forEach(([label, , , , contribution]) => {
                    const bin = bins.find((/** @type {any} */ each) => each.name === label);
                    if (!bin) return;
                    expectSame(Number(contribution), Number(bin.contribution.toPrecision(3)),
                               `contribution of ${label}`);
                });
                for (const [kind, word] of [["underflow", "below"], ["overflow", "above"]])
                    expectSame(rows.filter(([label]) => label.startsWith(`${word} `)).length,
                               bins.filter((/** @type {any} */ each) => each.kind === kind).length, `bins ${word} all edges`);
                expect(/^100 %$|^0 %$/.test(rows.at(-1)?.at(-1) ?? ""), `the sum: ${rows.at(-1)}`);
                return `${rows.length} rows`;
            }));
    await report.check("labels and names of any script, and of markup, are shown as they are", () =>
        visiting(browser, pageOf(filled.url, NAMED, SCRIPT), {}, async visit => {
            const {page} = visit;
            page.on("dialog", dialog => visit.tell(`a script ran: ${dialog.message()}`));
            await shown(page);
            await find(page, "heading", SCRIPT);
            const labels = await page.$$eval("[aria-label=Contributions] tbody th", all =>
                all.map(each => each.textContent));
            for (const name of NAMES) expect(labels.includes(name), `no bin is named ${name}`);
            expect((await page.title()).includes(SCRIPT), "title");
        }));
}

/** @param {Room} room */
async function checkHistory({browser, filled, report}) {
    await report.check("ten years: ranges are in the address, and survive a reload", () =>
        visiting(browser, pageOf(filled.url, "history", "ten years"), {}, async ({page}) => {
            await shown(page);
            const pressed = () => find(page, "button", "All").then(node => node.pressed);
            expectSame(await pressed(), false, "All at first");
            const began = Date.now();
            await click(page, "button", "All");
            await page.waitForNetworkIdle({idleTime: 300});
            const took = Date.now() - began - 300;
            await page.reload();
            await shown(page);
            expectSame(await pressed(), true, "All after a reload");
            return `all windows in ${took} ms`;
        }));
    await report.check("windows as a table, and as JSON of the API", () =>
        visiting(browser, pageOf(filled.url, "infinite", "unseen"), {}, async ({page}) => {
            await shown(page);
            await page.evaluate(() => document.querySelectorAll("details").forEach(each => {
                each.open = true;
            }));
            const rows = await page.$$eval("[aria-label=Windows] tbody tr", all => all.length);
            expectSame(rows, 4, "windows");
            const links = await page.$$eval("a[download]", all => all.map(({href}) => href));
            expect(links.length >= 2, `links: ${links}`);
            const texts = await Promise.all(links.map(async link => (await fetch(link)).text()));
            expectSame(JSON.parse(texts[0]).windows.length, 4, "windows in the JSON");
        }));
    await report.check("the curl line that reads the last window gives it", () =>
        visiting(browser, pageOf(filled.url, NAMED, SCRIPT), {}, async ({page}) => {
            const [line] = await waitForText(page, /^curl .*windows\/latest.*$/m);
            const printed = execFileSync("sh", ["-c", `${line} --no-progress-meter --fail`]);
            expectSame(JSON.parse(printed.toString()).name, SCRIPT, "name");
            return line.slice(0, 80);
        }));
}

/** Text that describes the element with the focus. @param {Page} page */
function readout(page) {
    return page.evaluate(() => {
        const id = document.activeElement?.getAttribute("aria-describedby") ?? "";
        return document.getElementById(id)?.textContent ?? "";
    });
}

/** @param {Page} page */
async function focusChart(page) {
    await shown(page);
    const chart = await (await find(page, "group", /^KL over time/)).elementHandle();
    await chart?.focus();
}

/** @param {Room} room */
async function checkChart({browser, filled, report}) {
    await report.check("arrows walk through the chart, Enter opens a window", () =>
        visiting(browser, pageOf(filled.url, "infinite", "unseen"), {}, async ({page}) => {
            await focusChart(page);
            await page.keyboard.press("End");
            const last = await readout(page);
            await page.keyboard.press("ArrowLeft");
            const before = await readout(page);
            expect(/KL ∞/.test(last) && /KL 0 nats/.test(before), `read: ${last} | ${before}`);
            await page.keyboard.press("Enter");
            await waitForText(page, /within the noise|No bin differs/i);
            expect(/window=\d+/.test(page.url()), `address: ${page.url()}`);
            return before;
        }));
    await report.check("arrows get past windows of the same moment", () =>
        visiting(browser, pageOf(filled.url, "same time", "daily"), {}, async ({page}) => {
            await focusChart(page);
            await page.keyboard.press("End");
            const last = await readout(page);
            for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowLeft");
            const first = await readout(page);
            expect(last.slice(0, 10) !== first.slice(0, 10), `from ${last} to ${first}`);
        }));
}

/**
 * Parts of the width of a chart in which a colour of the style sheet is drawn, from the left, as 0 and 1 for each tenth.
 * @param {Page} page
 * @param {string} chart  its class
 * @param {string} colour
 */
export function drawnIn(page, chart, colour) {
    return page.evaluate(([name, variable]) => {
        const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector(`.chart.${name} canvas`));
        const over = /** @type {HTMLElement} */ (document.querySelector(`.chart.${name} .u-over`));
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = `var(--${variable})`;
        const wanted = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number);
        probe.remove();
        const {left, width} = over.getBoundingClientRect();
        const from = left - canvas.getBoundingClientRect().left;
        const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
        return Array.from({length: 10}, (_, tenth) => {
            const {data} = ctx.getImageData(from + tenth * width / 10, 0, width / 10, canvas.height);
            /* as drawn over the ground: nearer to the colour than to grey */
            const hue = (/** @type {number[]} */ [r, g, b]) => [r - g, b - g];
            const [x, y] = hue(wanted);
            for (let i = 0; i < data.length; i += 4) {
                const [u, v] = hue([data[i], data[i + 1], data[i + 2]]);
                if (data[i + 3] > 30 && Math.hypot(u - x, v - y) < 0.3 * Math.hypot(x, y)) return 1;
            }
            return 0;
        }).join("");
    }, [chart, colour]);
}

/** @param {Room} room */
async function checkGaps({browser, filled, report}) {
    const url = pageOf(filled.url, "stale", "hourly");
    await report.check("the axis of time goes to now, and times without data are hatched and told", () =>
        visiting(browser, `${url}&range=all`, {}, async visit => {
            const {page} = visit;
            await shown(page);
            const verdict = await page.$eval("[aria-label=Verdict]", box => box.textContent);
            expect(/^ silent: no values came since .*Its last state: ok/.test(String(verdict)), String(verdict));
            expectSame(await drawnIn(page, "kl", "silent"), "1111111111", "hatched tenths of 30 days");
            expectSame(await drawnIn(page, "values", "silent"), "1111111111", "hatched tenths of the values");
            await page.goto(url);
            await shown(page);
            const latest = await drawnIn(page, "values", "silent");
            expect(/^0{6,8}1+$/.test(latest), `hatched tenths beside six windows: ${latest}`);
            await visit.picture("silent", true);
            return latest;
        }));
    await report.check("a window alone between gaps is drawn, and so is the way to an infinite one", () =>
        visiting(browser, pageOf(filled.url, "gaps", "lone"), {}, async ({page}) => {
            await shown(page);
            expectSame(await drawnIn(page, "kl", "kl"), "1111111111", "tenths with a line or a point");
            await page.goto(pageOf(filled.url, "infinite", "unseen"));
            await shown(page);
            const line = await drawnIn(page, "kl", "kl");
            expect(/^1{7}/.test(line), `tenths with a line: ${line}`);
        }));
    await report.check("on paper charts are light and as wide as the page, with the newest data; buttons are left out", () =>
        visiting(browser, pageOf(filled.url, "stale", "hourly"), {theme: "dark"}, async ({page}) => {
            await shown(page);
            const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("color-scheme"));
            await page.emulateMediaType("print");
            const [right, width, buttons] = await page.evaluate(() => {
                dispatchEvent(new Event("beforeprint"));
                const main = /** @type {HTMLElement} */ (document.querySelector("main"));
                main.style.width = "600px"; /* before a resize is noticed, as on paper */
                main.style.margin = "0";
                const edges = [...document.querySelectorAll("canvas")].map(each => each.getBoundingClientRect().right);
                return [Math.max(...edges), main.getBoundingClientRect().right,
                        [...document.querySelectorAll("main .buttons button")].filter(each => each.checkVisibility()).length];
            });
            expect(right > 300 && right <= width, `the charts end at ${right} of ${width} px`);
            expectSame(buttons, 0, "buttons");
            expectSame(await ground(), "light", "scheme on paper");
            expectSame(await page.evaluate(() => document.documentElement.dataset.theme), "light", "theme on paper");
            await page.evaluate(() => dispatchEvent(new Event("afterprint")));
            expectSame(await page.evaluate(() => document.documentElement.dataset.theme), "auto", "theme afterwards");
        }));
    await report.check("a silence between tables is a gap, too, if it was longer than the monitor may be silent", async () => {
        const path = monitorPath("between tables", "x");
        const now = Math.floor(Date.now() / 3600_000) * 3600;
        await filled.put(`${path}?stale_after=36000`, {bins: {edges: [0, 1, 2]}, reference: {counts: [500, 500]}});
        for (const hour of Array.from({length: 60}, (_, i) => 60 - i).filter(i => i > 40 || i <= 20))
            await filled.post(`${path}/observations`, {counts: [100, 100 + hour % 9], timestamp: now - 3600 * hour});
        await visiting(browser, pageOf(filled.url, "between tables", "x"), {}, async ({page}) => {
            await shown(page);
            const drawn = await drawnIn(page, "kl", "silent");
            expect(/^0{3}1{3,4}0{3,4}$/.test(drawn), `hatched tenths: ${drawn}`);
        });
        await filled.send("DELETE", monitorPath("between tables"));
    });
    await report.check("a chart of a monitor that is heard of has no gap", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            expectSame(await drawnIn(page, "kl", "silent"), "0000000000", "hatched tenths");
        }));
}

/** @param {Room} room */
async function checkNumbers({browser, filled, report}) {
    await report.check("numbers say what they are on focus", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {}, async ({page}) => {
            await shown(page);
            const n = await page.evaluate(() => {
                const terms = /** @type {HTMLElement[]} */ (
                    [...document.querySelectorAll("dt [aria-describedby]")]);
                const told = terms.filter(term => {
                    term.focus();
                    const id = term.getAttribute("aria-describedby") ?? "";
                    const tip = document.getElementById(id);
                    return tip && getComputedStyle(tip).visibility === "visible" &&
                        tip.getBoundingClientRect().height > 0 && tip.textContent;
                });
                return [terms.length, told.length];
            });
            expect(n[0] >= 8 && n[0] === n[1], `${n[1]} of ${n[0]} numbers`);
            return `${n[0]} numbers`;
        }));
}

/** @param {Room} room */
export async function checkMonitor(room) {
    await checkAnswer(room);
    await checkChosen(room);
    await checkBins(room);
    await checkHistory(room);
    await checkChart(room);
    await checkGaps(room);
    await checkNumbers(room);
}
