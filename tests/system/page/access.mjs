// Access: a token, asked for once and kept in the tab; JavaScript off.
import {writeFileSync} from "node:fs";
import {join} from "node:path";
import {Api} from "./api.mjs";
import {refuseStorage, visiting} from "./browser.mjs";
import {auditAccess} from "./audit.mjs";
import {healthy} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, find, findAll, handleOf, textOf, waitForText} from "./roles.mjs";
import {makeFolder, startServer} from "./server.mjs";
import {rowsOf} from "./overview.mjs";
import {pageOf, shown} from "./monitor.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {import("./browser.mjs").Visit} Visit
 */

const FULL = "full-token-0123456789", READER = "reader-token-0123456789";
const REFUSED = {expected: [/401/]};
/** Haste of clocks where a refresh is waited for: 10 s are half a second. */
const HASTE = 20;
/** Chromium counts files that are loaded ahead for scripts that it does not run as failed. */
const NO_SCRIPT = {script: false, expected: [/^request: .*\.js $/]};

/** @param {Room} room */
async function startGuarded({binary}) {
    const folder = makeFolder(), file = join(folder, "tokens");
    writeFileSync(file, `owner ${FULL}\nguest read ${READER}\n`, {mode: 0o600});
    const server = await startServer(binary, ["--auth-token-file", file], folder);
    await healthy(new Api(server.url, FULL));
    return server;
}

/**
 * @param {Page} page
 * @param {string} token
 */
async function giveToken(page, token) {
    await find(page, "dialog");
    await fill(page, /token/i, token);
    await page.keyboard.press("Enter");
}

/** @param {Visit} visit */
function expectNotTold(visit) {
    const urls = visit.requests.map(({url}) => url.href);
    expect(!urls.some(url => url.includes("token-0123")), "a token is in an address");
    expect(!visit.page.url().includes("token-0123"), "a token is in the page's address");
}

/**
 * @param {Room} room
 * @param {string} url
 */
async function checkAsking({browser, report}, url) {
    await report.check("a token is asked for once, and kept until the tab closes", () =>
        visiting(browser, url, REFUSED, async visit => {
            const {page} = visit;
            await find(page, "dialog");
            const type = await (await handleOf(page, "textbox", /token/i)).evaluate(field =>
                field.getAttribute("type"));
            expectSame(type, "password", "type of the field");
            const rules = await auditAccess(page);
            await giveToken(page, FULL);
            await rowsOf(page);
            const kept = await page.evaluate(() =>
                [Object.values(sessionStorage), Object.values(localStorage), document.cookie]);
            expect(kept[0].includes(FULL) && !JSON.stringify(kept.slice(1)).includes(FULL),
                   `kept: ${JSON.stringify(kept)}`);
            await page.reload();
            await rowsOf(page);
            expectSame((await findAll(page, "dialog")).length, 0, "dialogs after a reload");
            expectNotTold(visit);
            return rules;
        }));
}

/**
 * @param {Room} room
 * @param {string} url
 */
async function checkAskingAgain({browser, report}, url) {
    await report.check("a wrong token is told, and another is asked for", () =>
        visiting(browser, url, REFUSED, async visit => {
            const refused = visit.page.waitForResponse(answer => answer.status() === 401);
            await giveToken(visit.page, "wrong");
            await refused;
            const [told] = await waitForText(visit.page, /token was refused.*/i);
            await giveToken(visit.page, FULL);
            await rowsOf(visit.page);
            expectNotTold(visit);
            return told;
        }));
    await report.check("without a token the page says so, and asks again when wanted", () =>
        visiting(browser, url, REFUSED, async ({page}) => {
            await find(page, "dialog");
            await page.waitForNetworkIdle({idleTime: 200}); // of the calls that have the dialog open
            await page.keyboard.press("Escape");
            const [told] = await waitForText(page, /unauthori[sz]ed.*/i);
            await click(page, "button", /refresh/i);
            await giveToken(page, FULL);
            await rowsOf(page);
            expect(!/unauthori[sz]ed/i.test(await textOf(page)), "still told with a token");
            return told;
        }));
}

/**
 * @param {Room} room
 * @param {string} url
 */
async function checkUnusual({browser, report}, url) {
    await report.check("a token that cannot be sent is refused by the form", () =>
        visiting(browser, url, REFUSED, async visit => {
            const {page} = visit;
            await find(page, "dialog");
            await page.waitForNetworkIdle({idleTime: 200}); // of the calls that have the dialog open
            const n = visit.calls().length;
            for (const wrong of ["tökén-😀", "two words", "a\u0007b", "=="]) {
                await giveToken(page, wrong);
                expectSame((await page.$$("dialog input:invalid")).length, 1, `refused: ${wrong}`);
            }
            expectSame(visit.calls().length, n, "calls with such a token");
            await giveToken(page, ` ${FULL} `);
            await rowsOf(page);
        }));
    await report.check("after a dialog that was cancelled a good token goes on refreshing", () =>
        visiting(browser, url, {...REFUSED, haste: HASTE}, async visit => {
            const {page} = visit;
            await find(page, "dialog");
            await click(page, "button", "Cancel");
            await waitForText(page, /Unauthorised/);
            await click(page, "button", "Refresh");
            await giveToken(page, FULL);
            await rowsOf(page);
            await find(page, "button", "Pause");
            const n = visit.calls().length;
            await page.waitForResponse(answer => answer.url().includes("/monitors?"));
            expect(!/paused/.test(await textOf(page)), "it says to be paused");
            return `${visit.calls().length - n} more calls`;
        }));
    await report.check("where storage is refused, a token holds until the page is left", () =>
        visiting(browser, "about:blank", REFUSED, async visit => {
            const {page} = visit;
            visit.origin = new URL(url).origin;
            await refuseStorage(page);
            await page.goto(url);
            await giveToken(page, FULL);
            await rowsOf(page);
            await click(page, "link", "age");
            await shown(page);
            expectSame((await findAll(page, "dialog")).length, 0, "dialogs");
        }));
}

/**
 * @param {Room} room
 * @param {string} root
 */
async function checkReader({browser, report}, root) {
    await report.check("a token that may only read shows all, and is refused what it may not", () =>
        visiting(browser, pageOf(root, "healthy", "age"), {expected: [/401/, /403/]},
                 async visit => {
            const {page} = visit;
            await giveToken(page, READER);
            await shown(page);
            await page.goto(`${root}/dashboard/?add`);
            const input = await page.waitForSelector("input[type=file]");
            const file = join(makeFolder(), "table.csv");
            writeFileSync(file, "a\n1\n2\n3\n");
            await /** @type {any} */ (input).uploadFile(file);
            const alert = await find(page, "alert");
            expectNotTold(visit);
            const text = await textOf(page);
            expect(/scope|write|may not|lacks/i.test(text), `told: ${text.slice(-300)}`);
            return `${alert.role}: ${/.*(?:scope|may not|lacks).*/i.exec(text)?.[0]}`;
        }));
    await report.check("files of a monitor are saved with the token", () =>
        visiting(browser, pageOf(root, "healthy", "age"), REFUSED, async visit => {
            const {page} = visit;
            await giveToken(page, FULL);
            await shown(page);
            await page.evaluate(() => document.querySelectorAll("details").forEach(each => {
                each.open = true;
            }));
            const n = visit.requests.length;
            await click(page, "link", "JSON");
            await page.waitForNetworkIdle({idleTime: 200});
            const statuses = visit.requests.slice(n)
                .filter(({url}) => url.pathname.endsWith("/windows")).map(({status}) => status);
            expectSame(statuses.join(), "200", "answers");
            expectNotTold(visit);
        }));
}

/** @param {Room} room */
async function checkScriptOff({browser, filled, report}) {
    for (const path of ["dashboard/", ""])
        await report.check(`/${path} without JavaScript says where the numbers are`, () =>
            visiting(browser, `${filled.url}/${path}`, NO_SCRIPT, async ({page}) => {
                const links = await page.$$eval("main a, noscript a", all =>
                    all.map(link => /** @type {HTMLAnchorElement} */ (link).href));
                expect(links.length > 0, "no links");
                for (const link of links) {
                    const {status} = await fetch(link, {headers: {Accept: "text/html, */*;q=0.8"}});
                    expectSame(status, 200, link);
                }
                const text = await textOf(page);
                const [told] = /.*JavaScript.*/.exec(text) ?? [];
                expect(told, `text: ${text.slice(0, 300)}`);
                expect(!/loading/i.test(text), "it says to be loading, for ever");
                return `${told} ${links.length} links`;
            }));
}

/** @param {Room} room */
export async function checkAccess(room) {
    const server = await startGuarded(room);
    await checkAsking(room, `${server.url}/dashboard/`);
    await checkAskingAgain(room, `${server.url}/dashboard/`);
    await checkUnusual(room, `${server.url}/dashboard/`);
    await checkReader(room, server.url);
    await server.stop();
    await checkScriptOff(room);
}
