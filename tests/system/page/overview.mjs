// The overview: is anything wrong, since when, because of what.
import {execFileSync} from "node:child_process";
import {writeFileSync} from "node:fs";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {Api, monitorPath} from "./api.mjs";
import {auditAccess} from "./audit.mjs";
import {visiting} from "./browser.mjs";
import {loans, NAMED, NAMES} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, find, findAll, focused, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {toCsv} from "./tables.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/** Waits until the overview has a row, and returns the texts of all. @param {Page} page */
export async function rowsOf(page) {
    await page.waitForSelector("[role=cell], td");
    return page.$$eval("[role=row], tr", rows =>
        rows.filter(row => row.querySelector("[role=cell], td"))
            .map(row => /** @type {HTMLElement} */ (row).innerText));
}

/** @param {Room} room */
async function checkEmpty({binary, browser, report}) {
    const server = await startServer(binary);
    await report.check("no monitors yet: the two curl lines of this server work", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            const lines = await page.waitForFunction(() => {
                const found = document.body.innerText.match(/^curl .*$/gm);
                return found && found.length >= 2 ? found : null;
            }).then(handle => handle.jsonValue());
            const commands = /** @type {string[]} */ (lines).slice(0, 2);
            writeFileSync(join(server.folder, "reference.csv"), toCsv(loans(1)));
            writeFileSync(join(server.folder, "this-week.csv"), toCsv(loans(3, {income: 1})));
            for (const command of commands)
                execFileSync("sh", ["-c", `${command} --no-progress-meter --fail`],
                             {cwd: server.folder});
            const {monitors} = await new Api(server.url).get("/monitors");
            expectSame(monitors[0]?.name, "income", "worst monitor");
            return commands.join(" · ");
        }));
    await report.check("a button copies a curl line", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            await new Api(server.url).send("DELETE", "/monitors/credit");
            await page.reload();
            const context = page.browserContext();
            await context.overridePermissions(server.url, ["clipboard-read",
                                                           "clipboard-sanitized-write"]);
            await click(page, "button", /copy/i);
            await find(page, "button", /copied/i);
            const copied = await page.evaluate(() => navigator.clipboard.readText());
            expect(copied.startsWith("curl ") && copied.includes(server.url), `copied: ${copied}`);
            return copied;
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkRows({browser, filled, report}) {
    const url = `${filled.url}/dashboard/`;
    await report.check("monitors are listed as the API has them, worst first", () =>
        visiting(browser, url, {}, async ({page}) => {
            const rows = await rowsOf(page);
            const {monitors} = await filled.get("/monitors?limit=1000");
            expectSame(rows.length, monitors.length, "rows");
            const tidy = (/** @type {string} */ text) => text.replace(/\s+/g, " ");
            monitors.forEach((/** @type {any} */ {group, name}, /** @type {number} */ i) =>
                expect(rows[i].includes(group) && tidy(rows[i]).includes(tidy(name)),
                       `row ${i} is ${JSON.stringify(rows[i])}, expected ${group} / ${name}`));
            return `${rows.length} rows`;
        }));
    await report.check("each row says its state in a word and a shape", () =>
        visiting(browser, url, {}, async ({page}) => {
            const rows = await rowsOf(page);
            const words = rows.map(row => /critical|warning|silent|too little data|ok/.exec(row)?.[0]);
            expect(words.every(Boolean), `rows without: ${rows.filter((_, i) => !words[i])}`);
            const shapes = await page.$$eval("[role=cell]:first-child svg path", paths =>
                paths.map(path => path.getAttribute("d")));
            expectSame(new Set(shapes).size, new Set(words).size, "different shapes");
            return [...new Set(words)].join(", ");
        }));
    await report.check("a sentence counts what is wrong and names the worst", () =>
        visiting(browser, url, {}, async ({page}) => {
            const {monitors} = await filled.get("/monitors?limit=1000");
            const n = (/** @type {string} */ state) =>
                monitors.filter((/** @type {any} */ each) => each.state === state).length;
            const [sentence] = await waitForText(page, /\d+ critical.*\d+ warning.*monitors.*/);
            expect(sentence.includes(`${n("critical")} critical`) &&
                   sentence.includes(`${n("warning")} warning`) &&
                   sentence.includes(monitors[0].name), `sentence: ${sentence}`);
            return sentence;
        }));
}

/** @param {Room} room */
async function checkNames({browser, filled, report}) {
    await report.check("names of any script, and of markup, are shown as they are", () =>
        visiting(browser, `${filled.url}/dashboard/?group=${encodeURIComponent(NAMED)}`, {},
                 async visit => {
            const {page} = visit;
            page.on("dialog", dialog => visit.tell(`a script ran: ${dialog.message()}`));
            await rowsOf(page);
            const links = await page.$$eval("a", all => all.map(link => link.textContent));
            for (const name of NAMES) expect(links.includes(name), `no link is named ${name}`);
            const scripts = await page.$$eval("script", all => all.map(each => each.src));
            expect(scripts.every(Boolean), "a name became a script");
            return `${NAMES.length} names`;
        }));
    await report.check("the link of each name leads to it", () =>
        visiting(browser, `${filled.url}/dashboard/?group=${encodeURIComponent(NAMED)}`, {},
                 async ({page}) => {
            await rowsOf(page);
            const links = await page.$$eval("a", all =>
                all.map(({textContent, href}) => ({name: textContent ?? "", href})));
            for (const {name, href} of links.filter(link => NAMES.includes(link.name))) {
                const values = [...new URL(href).searchParams.values()];
                expect(values.includes(name) && values.includes(NAMED), `${name}: ${href}`);
            }
        }));
}

/** @param {Room} room */
async function checkFilters({browser, filled, report}) {
    const url = `${filled.url}/dashboard/`;
    await report.check("a state is chosen by a click, is in the address, survives reload and back",
                       () => visiting(browser, url, {}, async ({page}) => {
        const all = (await rowsOf(page)).length;
        await click(page, "link|button", /1 warning/);
        const only = async () => {
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 2);
            return rowsOf(page);
        };
        expect((await only())[0].includes("score"), "the row is not of score");
        const {searchParams} = new URL(page.url());
        expectSame(searchParams.get("state"), "warning", "state in the address");
        await page.reload();
        await only();
        await page.goBack();
        await page.waitForFunction(n => document.querySelectorAll("[role=row]").length === n + 1,
                                   {}, all);
        expectSame(new URL(page.url()).search, "", "address after back");
        return `1 of ${all} rows`;
    }));
    await report.check("a search is in the address, survives reload, and may find nothing", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            await fill(page, /search/i, "INCOME");
            await page.waitForFunction(() => location.search.includes("q=INCOME"));
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 5);
            await page.reload();
            const rows = await rowsOf(page);
            expect(rows.length === 4 && rows.every(row => row.includes("income")), rows.join("|"));
            await find(page, "searchbox", /search/i);
            await fill(page, /search/i, "no such name");
            await waitForText(page, /No monitor/);
        }));
}

/** @param {Room} room */
async function checkSilence({browser, filled, report}) {
    await report.check("silence has a mark of its own in the sentence, the states, the group and the row, never green", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            const [told] = await waitForText(page, /\d+ critical, \d+ warning and 1 silent of \d+ monitors/);
            await click(page, "link", /^1 silent/);
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 2);
            const [row] = await rowsOf(page);
            expect(/^silent/.test(row) && /No values since/.test(row) && !/\bok\b/.test(row), row);
            const looks = await page.$$eval(".card.silent .badge, [role=cell] .badge, [role=cell] .meter", all =>
                all.map(each => [each.className, getComputedStyle(each).color].join()));
            const colours = new Set(looks.map(look => look.split(",").slice(1).join()));
            const ok = await page.$eval(".chip.ok", each => getComputedStyle(each).color);
            expect(looks.length === 3 && colours.size === 1 && !colours.has(ok), looks.join(" "));
            const order = await page.$$eval(".card", all => all.map(each => each.className.split(" ")[1]));
            const places = ["critical", "warning", "silent", "insufficient_data", "ok"];
            expect(order.every((look, i) => i === 0 || places.indexOf(order[i - 1]) <= places.indexOf(look)), order.join());
            await click(page, "link", /^\d+ ok/);
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length > 2);
            expect((await rowsOf(page)).every(each => /^ok/.test(each)), "a row that is not ok");
            return told;
        }));
}

/** @param {Room} room */
async function checkLeaving({browser, filled, report}) {
    await report.check("a search that is left at once does not follow to the next page", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            await page.evaluate(() => {
                const search = /** @type {HTMLInputElement} */ (
                    document.querySelector("input[type=search]"));
                search.value = "inc";
                search.dispatchEvent(new Event("input", {bubbles: true}));
                /** @type {HTMLElement} */ (document.querySelector("a[href*='monitor=']")).click();
            });
            await find(page, "heading", /Contributions/);
            await sleep(400);
            const {searchParams} = new URL(page.url());
            expectSame(searchParams.get("q"), null, "search in the address");
            expect(searchParams.has("monitor"), `address: ${page.url()}`);
        }));
    await report.check("a state chosen by Enter keeps the focus, and asks for nothing else", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async visit => {
            const {page} = visit;
            await rowsOf(page);
            const chip = await (await find(page, "link", /1 warning/)).elementHandle();
            await chip?.focus();
            await page.keyboard.press("Enter");
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 2);
            await page.waitForNetworkIdle({idleTime: 200});
            const name = (await focused(page))?.name ?? "";
            expect(/1 warning/.test(name), `focus: ${name}`);
            const asked = visit.calls().map(({url}) => url.pathname + url.search);
            expect(asked.length <= 8 && new Set(asked).size <= 5, `asked: ${asked.join(" ")}`);
            return asked.join(" ");
        }));
}

/** @param {Room} room */
async function checkGroup({browser, filled, report}) {
    const url = `${filled.url}/dashboard/`;
    await report.check("a group is chosen by its name, and left again", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            await click(page, "link", "healthy");
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 6);
            expectSame(new URL(page.url()).searchParams.get("group"), "healthy", "group");
            await click(page, "link|button", /group healthy/i);
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length > 6);
        }));
}

/** @param {Room} room */
async function checkRange({browser, filled, report}) {
    const range = (/** @type {Page} */ page) => new URL(page.url()).searchParams.get("range");
    const pressed = async (/** @type {Page} */ page) =>
        page.$$eval("[aria-label='Time range'] [aria-pressed=true]", all => all.map(each => each.textContent).join());
    await report.check("a range of time stays across overview, group, monitor, comparison and events", () =>
        visiting(browser, `${filled.url}/dashboard/`, {}, async visit => {
            const {page} = visit;
            const since = (/** @type {RegExp} */ path, name = "from") => Math.round((Date.now() - Date.parse(
                visit.calls().findLast(({url}) => path.test(url.pathname))?.url.searchParams.get(name) ?? "")) / 86400_000);
            await rowsOf(page);
            await click(page, "button", "7 days");
            const [told, n] = await waitForText(page, /(\d+) changes of state in the last 7 days/);
            const {events} = await filled.get(`/events?limit=1000&since=${Date.now() / 1000 - 7 * 86400}`);
            expectSame(Number(n), events.length, "changes of state");
            await click(page, "link", "gaps");
            await find(page, "heading", "gaps");
            expectSame(`${range(page)} ${since(/groups\/gaps$/)} ${await pressed(page)}`, "7d 7 7 days", "group");
            await page.waitForFunction(() => document.querySelectorAll("[role=row]").length === 2);
            await click(page, "link", "lone");
            await find(page, "heading", /Contributions/);
            expectSame(`${range(page)} ${since(/windows$/)} ${await pressed(page)}`, "7d 7 7 days", "monitor");
            await page.click("details.panel summary");
            const days = await page.waitForFunction(() => {
                const [from, to, , before] = [...document.querySelectorAll("details.panel input")].map(each =>
                    Date.parse(/** @type {HTMLInputElement} */ (each).value));
                return from > 0 && from === before && (to - from) / 86400_000;
            });
            expectSame(await days.jsonValue(), 7, "days to compare");
            await click(page, "link", "Events");
            await find(page, "heading", "Events: changes of state");
            await page.waitForSelector(".feed");
            expectSame(`${range(page)} ${since(/events$/, "since")} ${await pressed(page)}`, "7d 7 7 days", "events");
            await click(page, "link", "Monitors");
            await rowsOf(page);
            await page.reload();
            await rowsOf(page);
            expectSame(`${range(page)} ${await pressed(page)}`, "7d 7 days", "overview");
            return told;
        }));
    await report.check("a range of one's own is entered in the zone that is shown, and holds on a monitor's chart", () =>
        visiting(browser, `${filled.url}/dashboard/?group=gaps&monitor=lone`, {zone: "Asia/Kolkata"}, async visit => {
            const {page} = visit;
            await find(page, "heading", /Contributions/);
            await click(page, "button", "Custom …");
            const from = Math.floor(Date.now() / 3600_000) * 3600_000 - 80 * 3600_000;
            const entered = (/** @type {number} */ at) => new Date(at + 330 * 60_000).toISOString().slice(0, 19);
            await page.$$eval("dialog input", (inputs, values) => inputs.forEach((input, i) => (input.value = values[i])),
                              [entered(from), entered(from + 20 * 3600_000)]);
            await click(page, "button", "Show");
            await page.waitForFunction(() => !document.querySelector("dialog"));
            await click(page, "button", "Custom …");
            await page.$$eval("dialog input", ([first, last]) => (/** @type {HTMLInputElement} */ (first).value =
                /** @type {HTMLInputElement} */ (last).value));
            await click(page, "button", "Show");
            await waitForText(page, /the end is not after the start/);
            await page.keyboard.press("Escape");
            await click(page, "button", "Custom …");
            expect(/^From, Asia/.test(await page.$eval("dialog label", each => each.textContent) ?? ""), "the zone of the field");
            await auditAccess(page);
            await click(page, "button", "Show");
            await page.waitForFunction(() => location.search.includes("from="));
            const {searchParams} = new URL(page.url());
            expectSame(Date.parse(searchParams.get("from") ?? ""), from, "from");
            await page.evaluate(() => document.querySelectorAll("details").forEach(each => (each.open = true)));
            await page.waitForFunction(() => document.querySelectorAll("[aria-label=Windows] tbody tr").length === 21);
            await waitForText(page, /\d\d:\d\d to \d{4}-\d\d-\d\d \d\d:30 \+05:30/);
            await page.waitForNetworkIdle({idleTime: 300});
            expectSame(new URL(page.url()).searchParams.get("from"), searchParams.get("from"), "from, later");
            await click(page, "link", "gaps");
            await find(page, "heading", "gaps");
            expectSame(new URL(page.url()).searchParams.get("from"), searchParams.get("from"), "from, of the group");
        }));
}

const HIDDEN = "safe\u202Eevil";

/** @param {Room} room */
async function checkShown({binary, browser, report}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    await api.put(monitorPath("odd\u2066", HIDDEN), {bins: {labels: ["a\u202Eb", "fraud"]}, reference: {counts: [500, 500]},
                                                    annotations: {owner: "Risk"}});
    await api.post(monitorPath("odd\u2066", HIDDEN, "observations"), {counts: [300, 100]});
    await api.put(monitorPath("noisy", "few"), {bins: {edges: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}, min_observations: 20,
                                               reference: {counts: Array(10).fill(10)}});
    await api.post(monitorPath("noisy", "few", "observations"), {counts: [8, 2, 5, 1, 7, 3, 6, 2, 9, 3]});
    await report.check("controls of direction in names and labels are shown, not obeyed", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            await rowsOf(page);
            const all = () => page.evaluate(() => document.title + document.body.textContent +
                [...document.querySelectorAll("body *")].flatMap(each => ["title", "aria-label", "download"].map(name =>
                    each.getAttribute(name))).join(""));
            expect(/safe\\u202Eevil/.test(await all()) && !/[\u202a-\u202e\u2066\u2067]/.test(await all()), "the overview");
            await click(page, "link", "safe\\u202Eevil");
            await find(page, "heading", /Contributions/);
            expect(/a\\u202Eb/.test(await all()) && !/[\u202a-\u202e\u2066\u2067]/.test(await all()), "the monitor");
            return page.title();
        }));
    await report.check("a search finds labels and annotations", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            for (const words of ["FRAUD", "risk"]) {
                await page.goto(`${server.url}/dashboard/?q=${words}`);
                const rows = await rowsOf(page);
                expect(rows.length === 1 && /evil/.test(rows[0]), `${words}: ${rows.join("|")}`);
            }
        }));
    await report.check("a KL beyond a threshold that is no alarm has the noise floor beside it", () =>
        visiting(browser, `${server.url}/dashboard/?group=noisy`, {}, async ({page}) => {
            const [row] = await rowsOf(page);
            const {monitors: [{noise_floor: noise, kl, thresholds}]} = await api.get("/monitors?group=noisy");
            expect(/^ok/.test(row) && kl > thresholds.critical, row);
            expect(row.includes(`so few values show about ${Number(noise.toPrecision(3))} nats`), row);
            const part = await page.$eval(".meter", each => /** @type {HTMLElement} */ (each).style.getPropertyValue("--chance"));
            expect(Math.abs(parseFloat(part) - 50 * noise / thresholds.critical) < 0.01, `striped: ${part}`);
            const drawn = await page.$eval(".meter", each => getComputedStyle(each).backgroundSize);
            expect(drawn.startsWith(part.slice(0, 4)), drawn);
            expectSame(await page.title(), "noisy · kldiv", "title");
            await find(page, "heading", "noisy");
            return row.replace(/\s+/g, " ");
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkMeaning({browser, filled, report}) {
    const url = `${filled.url}/dashboard/`;
    await report.check("columns have names for a screen reader", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            const heads = (await findAll(page, "columnheader")).map(({name}) => name ?? "");
            expect(heads.length >= 6 && heads.every(Boolean), `names: ${JSON.stringify(heads)}`);
            return heads.join(", ");
        }));
    await report.check("columns say what they are on hover or focus", () =>
        visiting(browser, url, {}, async ({page}) => {
            await rowsOf(page);
            const told = await page.$$eval("[role=columnheader], th", all => all.map(head => {
                const term = head.querySelector("[aria-describedby]");
                const id = term?.getAttribute("aria-describedby") ?? "";
                return document.getElementById(id)?.textContent || head.getAttribute("title") || "";
            }));
            expect(told.every(Boolean), `told: ${JSON.stringify(told)}`);
        }));
}

/** @param {Room} room */
export async function checkOverview(room) {
    await checkEmpty(room);
    await checkRows(room);
    await checkNames(room);
    await checkFilters(room);
    await checkSilence(room);
    await checkLeaving(room);
    await checkGroup(room);
    await checkRange(room);
    await checkShown(room);
    await checkMeaning(room);
}
