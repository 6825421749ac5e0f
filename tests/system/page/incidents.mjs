// Incidents on a group's page: what began to drift together, since when, which was first; muted together.
import {Api, monitorPath} from "./api.mjs";
import {auditAccess, auditWidth} from "./audit.mjs";
import {emulate, visiting} from "./browser.mjs";
import {expectSame} from "./report.mjs";
import {click, fill, find, focused, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 */

/** Hours of a day at which columns leave ok; one has a name from right to left, one the longest that there may be. */
const ONSETS = {age: 12, income: 13, job: 13, "مدينة": 13, zip: 14, ["x".repeat(128)]: 14, sex: 14, debt: 14, rent: 14,
                channel: 20, score: 3};
const DAY = "2026-01-01T";

/** A reason in which no line breaks. */
const REASON = `Ben${"x".repeat(150)}`;

/** Each column drifts from its hour on, `channel` less; `score` is ok again. @param {Api} api */
async function watch(api) {
    for (const [name, hour] of Object.entries(ONSETS)) {
        const path = monitorPath("credit", name);
        await api.put(`${path}?pool=1&clear_after=1&critical=0.2`, {bins: {labels: ["a", "b"]}, reference: {counts: [500, 500]}});
        const bad = name === "channel" ? [140, 60] : [180, 20];
        for (const [at, counts] of /** @type {[number, number[]][]} */ ([[1, [100, 100]], [hour, bad]]))
            await api.post(`${path}/observations?timestamp=${DAY}${String(at).padStart(2, "0")}:00:00Z`, {counts});
    }
    await api.post(`${monitorPath("credit", "score", "observations")}?timestamp=${DAY}23:00:00Z`, {counts: [100, 100]});
}

/** Two monitors of windows of six hours, the second of which drifts a window later. @param {Api} api */
async function watchLong(api) {
    for (const [name, hour] of [["early", "06"], ["late", "12"]]) {
        const path = monitorPath("long", name);
        await api.put(`${path}?pool=1&clear_after=1&window=6h`, {bins: {labels: ["a", "b"]}, reference: {counts: [500, 500]}});
        await api.post(`${path}/observations?timestamp=${DAY}${hour}:00:00Z`, {counts: [180, 20]});
    }
}

/** A group of 60 columns that drift together. @param {Api} api */
async function watchWide(api) {
    const table = (/** @type {number} */ shift) => ({columns: Object.fromEntries(Array.from({length: 60}, (_, i) =>
        [`c${i}`, Array.from({length: 100}, (_, k) => (k * 37 % 100) / 10 + shift)]))});
    await api.put(monitorPath("wide"), table(0));
    await api.post(monitorPath("wide", "observations"), table(5));
}

/** Texts of the lines, without marks of direction. @param {Page} page */
async function linesOf(page) {
    await page.waitForSelector(".incidents li");
    return page.$$eval(".incidents li", lines => lines.map(line =>
        /** @type {HTMLElement} */ (line).innerText.replace(/[\u2066-\u2069]/g, "").replace(/\s+/g, " ").trim()));
}

/** @param {Room} room */
export async function checkIncidents({binary, browser, report}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    await watch(api);
    const url = `${server.url}/dashboard/?group=credit`;
    await report.check("an incident is a line: how many, since when, the worst, which was first, why", () =>
        visiting(browser, url, {zone: "UTC"}, async ({page}) => {
            const [first, ...rest] = await linesOf(page);
            expectSame(first, "critical 9 columns drift since 2026-01-01 12:00 UTC. The first: age In its last window: “b”: 50 % → 10 %; “a”: 50 % → 90 % ⋯", "the worst");
            expectSame(rest.length, 0, "more lines");
            const named = await page.$$eval("main a[href*='monitor=']", links => links.filter(each => each.checkVisibility())
                .map(each => new URL(/** @type {HTMLAnchorElement} */ (each).href).searchParams.get("monitor")));
            const twice = named.filter((name, i) => named.indexOf(name) !== i);
            expectSame(`${twice}`, "age", "named twice");
            await page.click(".incidents a");
            await page.waitForFunction(() => location.search.includes("monitor="));
            expectSame(new URL(page.url()).search, "?group=credit&monitor=age", "where a name leads");
            return first;
        }));
    for (const [theme, width] of /** @type {["light" | "dark", number][]} */ (
        [["light", 1440], ["dark", 1440], ["light", 320], ["dark", 320]]))
        await report.check(`incidents, ${theme}, ${width} px`, () =>
            visiting(browser, url, {}, async visit => {
                await emulate(visit.page, {theme, width, height: 900, still: true});
                await visit.page.reload();
                await linesOf(visit.page);
                await visit.picture(`incidents-${theme}-${width}`);
                return `${await auditWidth(visit.page)}, ${await auditAccess(visit.page)}`;
            }));
    await report.check("a refresh keeps the focus; what changed is shown", () =>
        visiting(browser, url, {haste: 10}, async ({page}) => {
            await linesOf(page);
            await page.focus(".incidents a");
            await api.post(monitorPath("credit", "rent", "mute"), {seconds: 3600, reason: "Ann"});
            await waitForText(page, /9 columns.*1 muted/s);
            expectSame((await focused(page))?.name, "age", "focus");
            await api.send("DELETE", "/monitors/credit/rent/mute");
        }));
    await report.check("an incident has the row of actions, for all of its monitors", () =>
        visiting(browser, url, {}, async visit => {
            const {page} = visit;
            await linesOf(page);
            await click(page, "button", /^Actions on 9 columns/);
            await click(page, "button", "Owner …");
            await fill(page, "Owner", "risk team");
            await click(page, "button", "Save");
            await waitForText(page, /Owner: risk team/);
            await click(page, "button", "Acknowledge …");
            await fill(page, /^Who looks at it/, REASON);
            await click(page, "button", "Acknowledge");
            await find(page, "button", "Take back");
            await visit.picture("incident-actions");
            await auditAccess(page);
            const {monitors} = await api.get("/monitors?group=credit");
            const acknowledged = monitors.filter((/** @type {any} */ {muted}) => muted?.reason === `acknowledged: ${REASON}`);
            expectSame(acknowledged.length, 9, "acknowledged monitors");
            const {annotations} = await api.get(monitorPath("credit", "rent"));
            expectSame(annotations.owner, "risk team", "owner");
            await click(page, "button", "Close");
            await waitForText(page, /9 columns.*Acknowledged until .*: Benx+/s);
            await emulate(page, {width: 320, height: 900, still: true});
            await auditWidth(page);
            await emulate(page, {});
            await click(page, "button", /^Actions on 9 columns/);
            await click(page, "button", "Take back");
            await find(page, "button", "Acknowledge …");
            expectSame((await api.get("/groups/credit")).drifting[0].muted, null, "muted");
        }));
    await report.check("an incident that is muted as its group is told again as such", () =>
        visiting(browser, url, {}, async ({page}) => {
            await api.post("/groups/credit/mute", {seconds: 3600, reason: "move"});
            await page.reload();
            await click(page, "button", /^Actions on 9 columns/);
            await click(page, "button", "Unmute");
            await find(page, "button", "Acknowledge …");
            expectSame((await api.get("/groups/credit")).muted, null, "mute of the group");
        }));
    await watchLong(api);
    await report.check("windows of six hours make an incident where one follows the other", () =>
        visiting(browser, `${server.url}/dashboard/?group=long`, {zone: "UTC"}, async ({page}) => {
            const lines = await linesOf(page);
            expectSame(lines.map(line => line.split(" In its")[0]).join("; "),
                       "critical 2 columns drift since 2026-01-01 12:00 UTC. The first: early", "lines");
        }));
    await watchWide(api);
    await report.check("each monitor of a large incident is acknowledged", () =>
        visiting(browser, `${server.url}/dashboard/?group=wide`, {}, async ({page}) => {
            await click(page, "button", /^Actions on 60 columns/);
            await click(page, "button", "Acknowledge …");
            await fill(page, /^Who looks at it/, "Eve");
            await click(page, "button", "Acknowledge");
            await find(page, "button", "Take back");
            const {drifting} = await api.get("/groups/wide");
            const texts = drifting.map((/** @type {any} */ {muted}) => `${muted?.reason}`);
            expectSame(`${texts.length} ${[...new Set(texts)]}`, "60 acknowledged: Eve", "mutes of the monitors");
        }));
    await server.stop();
}
