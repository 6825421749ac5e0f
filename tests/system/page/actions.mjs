// What can be done from the pages: settings, reference, mute, delete, comparison, report, sample; and what is told.
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {Api, monitorPath} from "./api.mjs";
import {auditAccess} from "./audit.mjs";
import {visiting} from "./browser.mjs";
import {postMinutes, twoLabels} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {choose, click, clickMenu, fill, find, findAll, textOf, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {pageOf, shown} from "./monitor.mjs";
import {rowsOf} from "./overview.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/** Part of the layout that may move while a page loads (CLS, of web.dev). */
const MOST_SHIFT = 0.05;

/** Batches of a monitor of two labels: 20 as the reference, then 10 that are shifted. */
const BATCHES = Array.from({length: 30}, (_, i) => (i < 20 ? [100, 100] : [150, 50]));

/**
 * A server with one monitor that became critical.
 * @param {string} binary
 */
async function startShifted(binary) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    await twoLabels(api, "shop", "basket", ...BATCHES);
    return {server, api, path: monitorPath("shop", "basket"), url: pageOf(server.url, "shop", "basket")};
}

/** Waits until no dialog is open. @param {Page} page */
function closed(page) {
    return page.waitForFunction(() => !document.querySelector("dialog"));
}

/** @param {Room} room */
async function checkSettings({binary, browser, report}) {
    const {server, api, path, url} = await startShifted(binary);
    await report.check("settings are changed in a dialog, which says what they would have raised", () =>
        visiting(browser, url, {}, async visit => {
            const {page} = visit;
            await shown(page);
            await clickMenu(page, "Settings …");
            const [before] = await waitForText(page, /would have raised 1 alarm: .* critical/);
            await fill(page, "Warning from, nats", "1");
            await fill(page, "Critical from, nats", "2");
            await waitForText(page, /would have raised 0 alarms/);
            await visit.picture("settings", false);
            await auditAccess(page);
            await click(page, "button", "Save");
            await closed(page);
            const config = await api.get(path);
            expectSame(config.thresholds.critical, 2, "critical threshold");
            expectSame(config.revision, 1, "revision");
            await waitForText(page, /warning 1, critical 2/);
            return before;
        }));
    await report.check("what the server refuses is told in the dialog, which stays", () =>
        visiting(browser, url, {expected: [/422/]}, async ({page}) => {
            await shown(page);
            await clickMenu(page, "Settings …");
            await fill(page, "Warning from, nats", "5");
            await click(page, "button", "Save");
            await page.waitForFunction(() =>
                document.querySelector("dialog [role=alert]")?.textContent?.includes("critical"));
            return page.$eval("dialog [role=alert]", told => told.textContent);
        }));
    await report.check("a monitor is muted with a reason, and told again", () =>
        visiting(browser, url, {}, async ({page}) => {
            await shown(page);
            await click(page, "button", "Mute …");
            await fill(page, "Because", "known outage");
            await click(page, "button", "Mute");
            await closed(page);
            const [told] = await waitForText(page, /Muted until .*known outage/);
            expectSame((await api.get(path)).muted.reason, "known outage", "reason");
            await click(page, "button", "Unmute");
            await find(page, "button", "Mute …");
            expectSame((await api.get(path)).muted, null, "muted");
            return told;
        }));
    await report.check("one row has the owner, acknowledge, mute and link, on a monitor's page and from a list", () =>
        visiting(browser, url, {}, async visit => {
            const {page} = visit;
            const row = async () => (await page.$eval("[role=group][aria-label=Actions]", each =>
                /** @type {HTMLElement} */ (each).innerText)).replace(/\s+/g, " ");
            await shown(page);
            expectSame(await row(), "Acknowledge … Mute … No owner ⋯", "row");
            await click(page, "button", "Acknowledge …");
            await fill(page, /^Who looks at it/, "Ann, new form");
            await auditAccess(page);
            await click(page, "button", "Acknowledge");
            await closed(page);
            await waitForText(page, /Acknowledged until .*: Ann, new form/);
            const left = Date.parse((await api.get(path)).muted.until) - Date.now();
            expectSame(Math.round(left / 3600e3), 24, "hours of the mute");
            await page.goto(`${server.url}/dashboard/`);
            await click(page, "button", /^Actions on .*basket/);
            await click(page, "button", "Owner …");
            await fill(page, "Owner", "risk team");
            await click(page, "button", "Save");
            await waitForText(page, /Owner: risk team/);
            await visit.picture("row-of-actions");
            await auditAccess(page);
            expectSame((await api.get(path)).annotations.owner, "risk team", "owner");
            await click(page, "button", "Take back");
            await find(page, "button", "Acknowledge …");
            const context = page.browserContext();
            await context.overridePermissions(server.url, ["clipboard-read", "clipboard-sanitized-write"]);
            await click(page, "button", "Copy link");
            await find(page, "button", "Copied");
            const link = await page.evaluate(() => navigator.clipboard.readText());
            expectSame(link, url, "link");
            return row();
        }));
    await report.check("notes on a monitor or its group are on its time axis and in a list", () =>
        visiting(browser, url, {}, async visit => {
            const {page} = visit;
            await shown(page);
            await clickMenu(page, "Note …");
            await fill(page, "Text", "Version 3 is live");
            await auditAccess(page);
            await click(page, "button", "Write");
            await closed(page);
            await waitForText(page, /Version 3 is live\s+Delete/);
            await clickMenu(page, "Note …");
            await fill(page, "Text", "Sale");
            await choose(page, "On", "group");
            await click(page, "button", "Write");
            await closed(page);
            await waitForText(page, /Sale on the group/);
            await visit.picture("notes", true);
            await auditAccess(page);
            await click(page, "button", /^Delete the note .*Version 3/);
            await click(page, "button", "Delete");
            await closed(page);
            await page.waitForFunction(() => document.querySelectorAll(".notes li").length === 1);
            const {notes} = await api.get("/groups/shop/notes");
            expectSame(notes.map((/** @type {{text: string}} */ {text}) => text).join(), "Sale", "notes");
            await page.goto(`${server.url}/dashboard/?group=shop`);
            await waitForText(page, /Sale/);
        }));
    await report.check("a monitor is compared with windows before it, as its settings say", () =>
        visiting(browser, url, {}, async ({page}) => {
            await shown(page);
            await clickMenu(page, "Settings …");
            await choose(page, "Compared with", '{"previous":3}');
            await click(page, "button", "Save");
            await closed(page);
            expectSame((await api.get(path)).compare.previous, 3, "windows before");
            await waitForText(page, /the 3 windows before/);
        }));
    await report.check("the time since the drift began is offered as the reference", () =>
        visiting(browser, url, {expected: [/404/]}, async ({page}) => {
            await shown(page);
            await clickMenu(page, "New reference …");
            await waitForText(page, /The period begins with the drift.* it was last ok from /);
            await waitForText(page, /The new reference has 2,000 values, the present one /);
            await find(page, "group", /^reference and current, bin by bin/);
            await auditAccess(page);
            await click(page, "button", "Take it as the reference");
            await closed(page);
            await waitForText(page, /Revision\n+2/);
            const {revision, reference} = await api.get(path);
            expectSame(revision, 2, "revision");
            expectSame(reference.counts.join(), "1500,500", "counts of the 10 windows since the drift began");
            await waitForText(page, /no values since its new reference/);
        }));
    await report.check("a monitor is deleted once its name is typed", () =>
        visiting(browser, url, {expected: [/404/]}, async ({page}) => {
            await click(page, "button", "Delete …");
            await fill(page, /Type its name/, "another");
            await click(page, "button", "Delete");
            await waitForText(page, /that is not its name/);
            await api.get(path);
            await fill(page, /Type its name/, "basket");
            await click(page, "button", "Delete");
            await page.waitForFunction(() => !location.search.includes("monitor="));
            const {monitors} = await api.get("/monitors");
            expectSame(monitors.length, 0, "monitors that are left");
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkGroups({binary, browser, report}) {
    const {server, api} = await startShifted(binary);
    await twoLabels(api, "calm", "one", [100, 100]);
    await report.check("groups are cards, worst first; one leads to its monitors and what can be done", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async visit => {
            const {page} = visit;
            await rowsOf(page);
            const names = await page.$$eval("[aria-label=Groups] a", all => all.map(each => each.textContent));
            expectSame(names.join(), "shop,calm", "groups");
            await click(page, "link", "shop");
            await waitForText(page, /1 of 1 monitor drifts, since /);
            expectSame((await rowsOf(page)).length, 1, "rows");
            await clickMenu(page, "Settings of all …");
            await fill(page, "Windows judged together", "1");
            await click(page, "button", "Save");
            await closed(page);
            expectSame((await api.get(monitorPath("shop", "basket"))).pool, 1, "pool");
            await visit.picture("group", true);
            await auditAccess(page);
        }));
    await report.check("a click on a column sorts by it, which is in the address", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            const first = async () => (await rowsOf(page))[0];
            expect(/basket/.test(await first()), "worst first");
            await click(page, "button", /^KL, nats/);
            await page.waitForFunction(() => location.search.includes("sort=kl"));
            await click(page, "button", /^KL, nats/);
            await page.waitForFunction(() =>
                /one/.test(document.querySelector("[role=rowgroup]:nth-child(2) [role=row]")?.textContent ?? ""));
            const sorted = await page.$eval("[data-column=kl]", each => each.getAttribute("aria-sort"));
            expectSame(sorted, "ascending", "aria-sort");
        }));
    await report.check("changes of state of all monitors are a feed", () =>
        visiting(browser, `${server.url}/dashboard/?events`, {}, async visit => {
            const {page} = visit;
            await find(page, "heading", "Events: changes of state");
            await waitForText(page, /shop \/ basket/);
            const {events} = await api.get("/events");
            const entries = await page.$$eval(".feed li", all => all.length);
            expectSame(entries, events.length, "entries");
            const rise = events.find((/** @type {any} */ {to, window}) => to === "critical" && window !== null);
            const {sentence} = await api.get(`${monitorPath(rise.group, rise.name)}/windows/${rise.window}`);
            await waitForText(page, new RegExp(sentence.replace(/[^\w ]/g, ".*")));
            await visit.picture("events", true);
            await auditAccess(page);
            return `${entries} changes`;
        }));
    await report.check("a store that fails is told, since when and why", () =>
        visiting(browser, "about:blank", {}, async visit => {
            const {page} = visit;
            visit.origin = server.url;
            await page.setRequestInterception(true);
            page.on("request", request => void (request.url().endsWith("/readyz")
                ? request.respond({status: 200, contentType: "application/json", body: JSON.stringify({
                    status: "ok", store: "down", store_since: new Date(Date.now() - 3600_000).toISOString(),
                    store_error: "the disk is full"})})
                : request.continue()));
            await page.goto(`${server.url}/dashboard/`);
            return (await waitForText(page, /Nothing is being recorded: .* for 60 min. the disk is full/))[0];
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkPeriods({binary, browser, report}) {
    const {server, url, path, api} = await startShifted(binary);
    const {windows} = await api.get(`${path}/windows?limit=100`);
    const at = (/** @type {number} */ i) => windows[windows.length - 1 - i].window.start;
    const periods = [at(20), windows[0].window.end, at(0), at(20)];
    const wanted = `${path}/compare?from=${at(20)}&to=${windows[0].window.end}&against_from=${at(0)}&against_to=${at(20)}`;
    await report.check("two periods beside each other, as the API compares them, by a link", () =>
        visiting(browser, `${url}&compare=${encodeURIComponent(periods.join("~"))}`, {}, async visit => {
            const {page} = visit;
            const answer = await api.get(wanted);
            const [told] = await waitForText(page, /\d+ windows from .*, against 20 windows from .*/);
            await waitForText(page, new RegExp(`KL ${Number(answer.kl.toPrecision(3))} nats, p`));
            expect((await textOf(page)).includes(answer.sentence), answer.sentence);
            const legend = await page.$eval("details.panel .legend", each => each.textContent);
            expect(/reference: \d{4}.* to .*current: \d{4}.* to /.test(String(legend)), `legend: ${legend}`);
            await visit.picture("compared", true);
            return told;
        }));
    await report.check("a part of the time that is looked at is in the address, and left by a button", () =>
        visiting(browser, `${url}&from=${at(10)}&to=${at(25)}`, {}, async ({page}) => {
            await shown(page);
            await find(page, "button", "Show the whole range");
            await click(page, "button", "Show the whole range");
            await page.waitForFunction(() => !location.search.includes("from="));
            expectSame((await findAll(page, "button", "Show the whole range")).length, 0, "buttons");
        }));
    await report.check("a report is one file that loads nothing, with the same words", () =>
        visiting(browser, url, {}, async ({page}) => {
            await shown(page);
            const verdict = await page.$eval("[aria-label=Verdict]", box => box.textContent?.replace(/, for .*/s, ""));
            const client = await page.createCDPSession();
            await client.send("Browser.setDownloadBehavior", {
                behavior: "allow", downloadPath: server.folder,
                browserContextId: /** @type {any} */ (page.browserContext()).id});
            await clickMenu(page, "Save report");
            const file = join(server.folder, `basket-${new Date().toISOString().slice(0, 10)}.html`);
            const text = await wait(() => readFileSync(file, "utf8"));
            expect(text.includes(String(verdict)), `no verdict: ${verdict}`);
            expect(!/<script|<link|src="(?!data:)/.test(text), "the report loads something");
            expect(/ src="data:image\/png/.test(text), "no pictures of the charts");
            return `${text.length} bytes`;
        }));
    await server.stop();
}

/**
 * What a function returns once it does not throw.
 * @template T
 * @param {() => T} attempt
 * @returns {Promise<T>}
 */
async function wait(attempt) {
    for (let i = 0; ; i++)
        try {
            return attempt();
        } catch (error) {
            if (i === 100) throw error;
            await new Promise(resolve => setTimeout(resolve, 50));
        }
}

/** @param {Room} room */
async function checkSample({binary, browser, report}) {
    const server = await startServer(binary);
    await report.check("from an empty server to an alarm that is understood: four clicks", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async ({page}) => {
            const began = Date.now();
            await click(page, "link", "try it with a sample");
            await click(page, "button", "Create the monitors");
            await click(page, "button", "Use the sample’s batch");
            await click(page, "link", "country");
            const [told] = await waitForText(page, /“NG”, never seen before, is \d+ %/);
            return `${told}, after ${Date.now() - began} ms`;
        }));
    await report.check("a file that is dropped on a group is a batch of it, or a new reference", () =>
        visiting(browser, `${server.url}/dashboard/?group=sample`, {}, async ({page}) => {
            await rowsOf(page);
            await page.evaluate(() => {
                const carried = new DataTransfer();
                const lines = Array.from({length: 300}, (_, i) => `${i % 90},DE,${i % 50},mobile`);
                carried.items.add(new File([["amount,country,age,device", ...lines].join("\n")], "today.csv"));
                for (const type of ["dragover", "drop"])
                    document.body.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true,
                                                                     dataTransfer: carried}));
            });
            await click(page, "button", "Score it as a batch");
            await find(page, "heading", /verdicts on the batch/i);
            const rows = await rowsOf(page);
            expect(rows.some(row => /country/.test(row) && /critical/.test(row)), rows.join("|"));
        }));
    await report.check("columns that no longer come are told, and a new one has a link that adds it alone", () =>
        visiting(browser, "about:blank", {}, async visit => {
            const {page} = visit, api = new Api(server.url);
            const lines = Array.from({length: 100}, (_, i) => `${i % 90},DE,${i % 50},${i % 2 ? "red" : "blue"}`);
            for (let i = 0; i < 3; i++)
                await api.post("/monitors/sample/observations", ["amount,country,age,paint & ink", ...lines].join("\n"));
            visit.origin = server.url;
            await page.goto(`${server.url}/dashboard/?group=sample`);
            await waitForText(page, /No longer in the data: .?device/);
            await auditAccess(page);
            await click(page, "link", "Add paint & ink");
            await waitForText(page, /Its column paint & ink becomes a monitor/);
            await page.evaluate(table => {
                const carried = new DataTransfer();
                carried.items.add(new File([table], "paint.csv"));
                for (const type of ["dragover", "drop"])
                    document.querySelector(".drop")?.dispatchEvent(
                        new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: carried}));
            }, ["amount,paint & ink", ...lines.map(line => `1,${line.split(",")[3]}`)].join("\n"));
            await find(page, "heading", "1 monitor of 100 rows, with these bins");
            await click(page, "button", "Create the monitors");
            await waitForText(page, /1 monitor of sample ready/);
            expectSame((await api.get("/groups/sample")).new.join(), "", "new columns");
        }));
    await server.stop();
}

/** @param {Room} room */
async function checkShifts({browser, filled, report}) {
    for (const [what, url] of Object.entries({
        "the overview": `${filled.url}/dashboard/`, "a monitor": pageOf(filled.url, "shifted", "income"),
        "the documentation": `${filled.url}/docs`,
    }))
        await report.check(`little of ${what} moves while it loads`, () =>
            visiting(browser, "about:blank", {}, async visit => {
                const {page} = visit;
                visit.origin = filled.url;
                await page.evaluateOnNewDocument(() => {
                    /** @type {any} */ (window).shifted = 0;
                    new PerformanceObserver(list => list.getEntries().forEach(entry => {
                        const {hadRecentInput, value} = /** @type {any} */ (entry);
                        if (!hadRecentInput) /** @type {any} */ (window).shifted += value;
                    })).observe({type: "layout-shift", buffered: true});
                });
                await page.goto(url, {waitUntil: "networkidle0"});
                const shifted = await page.evaluate(() => /** @type {any} */ (window).shifted);
                expect(shifted < MOST_SHIFT, `${shifted} of the layout`);
                return `${shifted.toFixed(4)} of the layout`;
            }));
}

/** @param {Room} room */
async function checkMarks({binary, browser, report}) {
    const {server, api, path, url} = await startShifted(binary);
    await postMinutes(api, path, 40, Array.from({length: 20}, () => [100, 100]));
    await report.check("the state has its own time, not that of the last window", () =>
        visiting(browser, url, {zone: "UTC"}, async visit => {
            const {page} = visit;
            await shown(page);
            const {severity_since: began, state} = await api.get(path);
            const [told] = await waitForText(page, new RegExp(`${state} since \\d{4}-.*`));
            const wanted = `${began.slice(0, 10)} ${began.slice(11, 16)}`;
            expect(told.includes(wanted), `${told}, and the API says ${began}`);
            await visit.picture("alarm-that-ended", true);
            return told;
        }));
    await report.check("the preview of settings tells alarms from what fell", () =>
        visiting(browser, url, {zone: "UTC"}, async ({page}) => {
            await shown(page);
            await clickMenu(page, "Settings …");
            const {preview} = await api.send("PATCH", `${path}?dry_run=true`, {});
            const [, alarms, falls] = await waitForText(page, /would have raised 1 alarm: (.*?)\. The present settings raise \d+\.\s+It would have fallen: (.*)\./);
            expect(/^[^,]* critical$/.test(alarms), `alarms: ${alarms}`);
            expectSame(falls.split(", ").length, preview.changes.length - 2, "falls"); /* but the first, and the alarm */
            expect(/to ok/.test(falls), `falls: ${falls}`);
            return `${alarms}; ${falls}`;
        }));
    await server.stop();
}

/** @param {Room} room */
export async function checkActions(room) {
    await checkSettings(room);
    await checkGroups(room);
    await checkPeriods(room);
    await checkSample(room);
    await checkMarks(room);
    await checkShifts(room);
}
