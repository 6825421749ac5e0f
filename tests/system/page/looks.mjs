// Looks of each main view: light and dark, narrow and wide; axe-core; pictures to be looked at.
import {auditAccess, auditWidth} from "./audit.mjs";
import {emulate, openVisit, visiting} from "./browser.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, find, findAll, handleOf, textOf} from "./roles.mjs";
import {rowsOf} from "./overview.mjs";
import {pageOf, shown} from "./monitor.mjs";
import {startServer} from "./server.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {import("./browser.mjs").Conditions} Conditions
 * @typedef {(page: Page) => Promise<unknown>} Ready
 */

/**
 * Waits for a heading.
 * @param {RegExp} name
 * @returns {Ready}
 */
function headed(name) {
    return page => find(page, "heading", name);
}

/** Fills the calculator by its example. @param {Page} page */
async function calculated(page) {
    await click(page, "button", /example/i);
    await find(page, "table");
}

/**
 * looks: how views are looked at, by the ends of the pictures' names. `rules`: axe-core is run.
 * @type {{look: string, conditions: Conditions, rules: boolean}[]}
 */
const LOOKS = [
    {look: "light", conditions: {}, rules: true},
    {look: "narrow", conditions: {width: 320, height: 640, still: true}, rules: true},
    {look: "dark", conditions: {theme: "dark"}, rules: true},
    {look: "4k", conditions: {width: 3840, height: 2160}, rules: false},
];

/**
 * Main views by the names of their pictures.
 * @param {string} root
 * @param {string} empty  address of a server without monitors
 * @returns {[string, string, Ready][]}
 */
function views(root, empty) {
    return [
        ["overview", `${root}/dashboard/`, rowsOf],
        ["empty", `${empty}/dashboard/`, headed(/no monitors yet/i)],
        ["monitor", pageOf(root, "shifted", "income"), shown],
        ["infinite", pageOf(root, "infinite", "unseen"), shown],
        ["insufficient", pageOf(root, "few rows", "income"), shown],
        ["single-bin", pageOf(root, "single", "constant"), shown],
        ["1000-bins", pageOf(root, "fine", "latency"), shown],
        ["ten-years", `${pageOf(root, "history", "ten years")}&range=all`, shown],
        ["add", `${root}/dashboard/?add`, headed(/reference table/i)],
        ["calculator", `${root}/`, calculated],
    ];
}

/** Views of which the first looks are enough: in the others they are like `monitor`. */
const LIKE_OTHERS = ["infinite", "insufficient", "single-bin", "1000-bins", "ten-years"];

/**
 * Looks at one view in each way, in one visit.
 * @param {Room} room
 * @param {string} name
 * @param {string} url
 * @param {Ready} ready
 */
async function checkView({browser, report}, name, url, ready) {
    const visit = await openVisit(browser, url);
    for (const {look, conditions, rules} of LOOKS.slice(0, LIKE_OTHERS.includes(name) ? 2 : 4))
        await report.check(`${name}, ${look}`, async () => {
            await emulate(visit.page, conditions);
            await visit.page.goto(url);
            await ready(visit.page);
            await visit.picture(`${name}-${look}`, look !== "4k" && name !== "overview");
            const width = await auditWidth(visit.page);
            const seen = rules ? `${width}, ${await auditAccess(visit.page)}` : width;
            expectSame(visit.problems.splice(0).join("; "), "", "faults of the page");
            return seen;
        });
    await visit.close();
}

/** @param {Room} room */
async function checkViews(room) {
    const empty = await startServer(room.binary);
    const waiting = views(room.filled.url, empty.url);
    const lane = async () => {
        for (let view = waiting.shift(); view; view = waiting.shift())
            await checkView(room, ...view);
    };
    await Promise.all([lane(), lane()]);
    await empty.stop();
}

/** Colour of the page's ground. @param {Page} page */
function groundOf(page) {
    return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
}

/** @param {Room} room */
async function checkTheme({browser, filled, report}) {
    await report.check("the theme is the system's, or the reader's, who keeps it", () =>
        visiting(browser, `${filled.url}/dashboard/`, {theme: "dark"}, async ({page}) => {
            await rowsOf(page);
            const dark = await groundOf(page);
            const select = await handleOf(page, "combobox", /theme/i);
            await select.select("light");
            const light = await groundOf(page);
            expect(dark !== light, `both are ${dark}`);
            await page.reload();
            await rowsOf(page);
            expectSame(await groundOf(page), light, "ground after a reload");
            return `${dark}, ${light}`;
        }));
}

const TIME = /since (\d{4}-\d\d-\d\d \d\d:\d\d)(?::\d\d)? (UTC|\+05:30)/;

/** @param {Room} room */
async function checkZone({browser, filled, report}) {
    await report.check("times are local or UTC, as the reader chose, and say which", () =>
        visiting(browser, pageOf(filled.url, "shifted", "income"), {zone: "Asia/Kolkata"},
                 async ({page}) => {
            await shown(page);
            const [, local, named] = TIME.exec(await textOf(page)) ?? [];
            expectSame(named, "+05:30", "zone of a local time");
            expect((await findAll(page, "combobox", /zone/i))[0].value === "Local: Asia/Calcutta", "the zone has no name");
            await (await handleOf(page, "combobox", /zone/i)).select("utc");
            await shown(page);
            await page.reload();
            await shown(page);
            const [, utc, marked] = TIME.exec(await textOf(page)) ?? [];
            expectSame(marked, "UTC", "zone of a UTC time");
            const minutes = (Date.parse(`${local}Z`) - Date.parse(`${utc}Z`)) / 60000;
            expectSame(minutes, 330, `minutes between ${local} and ${utc}`);
            return `${local}, ${utc} UTC`;
        }));
}

/** @param {Room} room */
async function checkStill({browser, filled, report}) {
    await report.check("nothing moves for those who want it so", () =>
        visiting(browser, `${filled.url}/dashboard/`, {still: true}, async ({page}) => {
            await rowsOf(page);
            const moving = await page.evaluate(() =>
                document.getAnimations().length +
                [...document.querySelectorAll("*")].filter(each =>
                    parseFloat(getComputedStyle(each).transitionDuration) > 0.01).length);
            expectSame(moving, 0, "elements that move");
        }));
}

/** @param {Room} room */
export async function checkLooks(room) {
    await checkViews(room);
    await checkTheme(room);
    await checkZone(room);
    await checkStill(room);
}
