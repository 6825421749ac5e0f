// The calculator at the root: its figure against an oracle, its curl line, its words.
import {execFileSync} from "node:child_process";
import {writeFileSync} from "node:fs";
import {join} from "node:path";
import {auditAccess, auditWidth} from "./audit.mjs";
import {visiting} from "./browser.mjs";
import {counts, divergence, randomRow, SPACES} from "./divergence.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, find, findAll, waitForText} from "./roles.mjs";
import {makeFolder, startServer} from "./server.mjs";
import {randomNumbers} from "./tables.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {import("./divergence.mjs").Space} Space
 *
 * @typedef {object} Input  of the page's fields
 * @property {string} reference
 * @property {string} current
 * @property {Space} [referenceSpace]
 * @property {Space} [currentSpace]
 * @property {"e" | "2"} [base]
 * @property {string} [pseudocount]
 */

/** The most that the page may differ by from the oracle, relative. */
const NEAR = 1e-9;

/**
 * Address of the page with these fields.
 * @param {string} root
 * @param {Input} input
 */
function addressOf(root, input) {
    return `${root}/#${new URLSearchParams(/** @type {any} */ (input))}`;
}

/** The figure as a number, once there is one. @param {Page} page */
async function figureOf(page) {
    await page.waitForSelector("main [aria-busy=false] data");
    return page.$eval("main data", data => Number(data.getAttribute("value")));
}

/** The curl line of the page. @param {Page} page */
async function commandOf(page) {
    await find(page, "region", /curl/i);
    return page.$eval("main .command code", code => code.textContent ?? "");
}

/** Runs a command line in a shell, and returns the answer's loss. @param {string} command */
function lossBy(command) {
    const answer = execFileSync("sh", [], {input: command.replace(/^curl/m, "curl -sS"),
                                           encoding: "utf8", maxBuffer: 1 << 24});
    return Number(JSON.parse(answer).loss);
}

/**
 * @param {number} seen
 * @param {number} expected
 * @param {string} what
 */
function expectNear(seen, expected, what) {
    const near = Object.is(seen, expected) ||
        Math.abs(seen - expected) <= NEAR * Math.abs(expected) + 1e-14;
    expect(near, `${what}: ${seen}, expected ${expected}`);
}

/**
 * A random question: all pairs of spaces, rows of both or of one side, both bases.
 * @param {number} i
 */
function randomQuestion(i) {
    const random = randomNumbers(1000 + i);
    const referenceSpace = SPACES[i % 4], currentSpace = SPACES[(i >> 2) % 4];
    const n = 1 + Math.floor(random() * 30), rows = i % 3 === 0 ? 1 + Math.floor(random() * 4) : 1;
    const reference = Array.from({length: i % 2 ? rows : 1}, () => randomRow(random, n, referenceSpace));
    const current = Array.from({length: rows}, () => randomRow(random, n, currentSpace));
    const pseudocount = random() < 0.5 ? 0 : 0.5, base = random() < 0.5 ? "e" : "2";
    const text = (/** @type {number[][]} */ table) => table.map(row => row.join(" ")).join("\n");
    const how = {referenceSpace, currentSpace, pseudocount};
    const all = current.map((row, at) => divergence(reference[at] ?? reference[0], row, how));
    const mean = all.reduce((a, b) => a + b, 0) / rows / (base === "2" ? Math.LN2 : 1);
    /** @type {Input} */
    const input = {reference: text(reference), current: text(current), referenceSpace, currentSpace,
                   base: base === "2" ? "2" : "e", pseudocount: String(pseudocount)};
    return {input, mean};
}

/** @param {Room} room */
async function checkFigures({browser, filled, report}) {
    await report.check("random questions: the figure, and by curl the same to the last bit", () =>
        visiting(browser, "about:blank", {}, async visit => {
            visit.origin = filled.url;
            let infinite = 0;
            for (let i = 0; i < 48; i++) {
                const {input, mean} = randomQuestion(i);
                await visit.page.goto("about:blank");
                await visit.page.goto(addressOf(filled.url, input));
                const seen = await figureOf(visit.page);
                expectNear(seen, mean, `question ${i} (${JSON.stringify(input).slice(0, 200)})`);
                expectSame(lossBy(await commandOf(visit.page)), seen, `question ${i} by curl`);
                infinite += seen === Infinity ? 1 : 0;
            }
            return `48 questions, ${infinite} of them infinite`;
        }));
    await report.check("1,000 bins in 5 rows: a body that no word of a command line may hold", () =>
        visiting(browser, `${filled.url}/`, {}, async ({page}) => {
            await figureOf(page);
            const random = randomNumbers(5);
            const table = () => Array.from({length: 5}, () => randomRow(random, 1000, "count"));
            const [reference, current] = [table(), table()];
            await set(page, {reference: lines(reference), current: lines(current), pseudocount: "1"});
            const mean = current.reduce((sum, row, i) =>
                sum + divergence(reference[i], row, counts(1)), 0) / current.length;
            const seen = await figureOf(page);
            expectNear(seen, mean, "figure");
            expectSame(lossBy(await commandOf(page)), seen, "by curl");
            await click(page, "button", "Row 5");
            await waitForText(page, /Row 5: .* of the shift/);
            await click(page, "button", "All 1,000 bins");
            expectSame(await page.$$eval("main table:last-of-type tbody tr", rows => rows.length > 999),
                       true, "rows of the table");
            expect(!page.url().includes("#"), "so long a link");
            await page.reload();
            expectSame(await figureOf(page), seen, "figure after a reload");
        }));
}

/** @param {number[][]} table */
function lines(table) {
    return table.map(row => row.join("\t")).join("\n");
}

/**
 * Puts texts into fields at once, as a paste does.
 * @param {Page} page
 * @param {Partial<Input>} input
 */
async function set(page, input) {
    await page.evaluate(values => {
        document.querySelector("main data")?.remove();
        for (const [id, value] of Object.entries(values)) {
            const field = /** @type {HTMLInputElement} */ (document.getElementById(id));
            field.value = value;
            field.dispatchEvent(new Event("input", {bubbles: true}));
        }
    }, /** @type {Record<string, string>} */ (input));
}

/** @param {Room} room */
async function checkFirst({browser, filled, report}) {
    for (const theme of /** @type {const} */ (["light", "dark"]))
        for (const width of [320, 1280, 3840])
            await report.check(`the first visit, ${theme}, ${width} px: an example and its result`, () =>
                visiting(browser, `${filled.url}/`, {theme, width}, async visit => {
                    const {page} = visit;
                    expectNear(await figureOf(page), divergence([120, 310, 270, 190, 110],
                                                                [14, 25, 30, 29, 42], counts(0)), "figure");
                    expect(!page.url().includes("#"), `address: ${page.url()}`);
                    await auditWidth(page);
                    await visit.picture(`calculator-${theme}-${width}`, true);
                    return auditAccess(page);
                }));
    await report.check("typed by keys: figure, title and status follow, in nats and bits", () =>
        visiting(browser, `${filled.url}/`, {}, async ({page}) => {
            await figureOf(page);
            await click(page, "button", "Clear");
            await waitForText(page, /No result yet/);
            expectSame((await findAll(page, "textbox", /Reference/))[0]?.focused, true, "focus");
            await page.keyboard.type("1 1");
            await page.keyboard.press("Tab");
            await page.keyboard.press("Tab");
            await page.keyboard.type("1 0");
            await waitForText(page, /0\.693147\s+nats/);
            await page.select("#base", "2");
            const [shown] = await waitForText(page, /KL\(current ‖ reference\)\s+1\s+bits/);
            expectSame(await page.title(), "1 bits · KL calculator · kldiv", "title");
            await find(page, "status");
            return shown.replace(/\s+/g, " ");
        }));
}

/** @param {Room} room */
async function checkWords({browser, filled, report}) {
    const open = (/** @type {Input} */ input,
                  /** @type {(page: Page) => Promise<string | void>} */ body,
                  expected = /** @type {RegExp[]} */ ([])) =>
        visiting(browser, addressOf(filled.url, input), {expected}, async visit => {
            const seen = await body(visit.page);
            await auditAccess(visit.page);
            return seen;
        });
    await report.check("infinite: the bin is named, and a pseudocount cures it", () =>
        open({reference: "a 10\nb 0\nc 5", current: "a 3\nb 4\nc 1"}, async page => {
            expectSame(await figureOf(page), Infinity, "figure");
            const [told] = await waitForText(page, /50 % of the values.*b.*\s+.*q = 0.*/);
            await click(page, "button", /pseudocount of 0\.5/);
            await page.waitForFunction(() =>
                Number.isFinite(Number(document.querySelector("data")?.getAttribute("value"))));
            expectNear(await figureOf(page), divergence([10, 0, 5], [3, 4, 1], counts(0.5)), "cured");
            return told;
        }));
    await report.check("not a number: said, and where", () =>
        open({reference: "0.5 nan 0.5", current: "0.2 0.3 0.5", referenceSpace: "prob",
              currentSpace: "prob"}, async page => {
            expectSame(await figureOf(page), NaN, "figure");
            return (await waitForText(page, /The server reports: .*NaN.*#2.*/))[0];
        }));
    await report.check("probabilities that do not sum to 1 are told", () =>
        open({reference: "0.5 0.5", current: "0.5 0.6", referenceSpace: "prob", currentSpace: "prob"},
             async page => (await waitForText(page, /current are 1\.1 .*“Counts”.*/))[0]));
    await report.check("a problem of the server is at its field, and names row and bin", () =>
        open({reference: "a,b,c\n0,0.5,0.5\n0,1.1,-0.1", current: "0 0.5 0.5", referenceSpace: "prob",
              currentSpace: "prob"}, async page => {
            const [told] = await waitForText(page, /Row 2\. Bin .*c.*: reference holds -0\.1.*/);
            expectSame(await page.$eval("#reference", field => field.getAttribute("aria-invalid")),
                       "true", "aria-invalid");
            return told;
        }, [/422/]));
    for (const [name, input, pattern] of /** @type {[string, Input, RegExp][]} */ ([
        ["bins that differ", {reference: "1 2 3", current: "1 2"}, /2 bins here, and 3 bins .*/],
        ["rows that differ", {reference: "1 2\n3 4\n5 6", current: "1 2\n3 4"},
         /2 rows here, and 3 rows.*/],
        ["no number", {reference: "1 2 x", current: "1 2 3"}, /“x” is not a number.*/],
        ["zeros alone", {reference: "0 0", current: "1 2"}, /all counts are 0.*/],
        ["a negative count", {reference: "1 2", current: "1 -2"}, /bin .*#2.* holds -2.*/],
        ["a pseudocount of letters", {reference: "1 2", current: "1 2", pseudocount: "x"},
         /a pseudocount is.*/],
    ]))
        await report.check(`${name}: told at the field, and nothing is asked`, () =>
            visiting(browser, addressOf(filled.url, input), {}, async visit => {
                const [told] = await waitForText(visit.page, pattern);
                expectSame((await visit.page.$$("[aria-invalid=true]")).length, 1, "invalid fields");
                await visit.page.waitForNetworkIdle({idleTime: 300});
                expectSame(visit.calls().length, 0, "calls");
                await auditAccess(visit.page);
                return told;
            }));
    await report.check("labels are matched, and a label of one side has nothing on the other", () =>
        open({reference: "b 3\na 1", current: "a 2\nb 2\nc 0"}, async page => {
            expectNear(await figureOf(page), divergence([1, 3], [2, 2], counts(0)), "figure");
        }));
    await report.check("labels of any script, and of markup, are shown as they are", () =>
        open({reference: "😀 3\nשלום 4\n<script>alert(1)</script> 5", current: "1 2 3"},
             async page => {
            await figureOf(page);
            await waitForText(page, /<script>alert\(1\)<\/script>\s/);
            expectSame((await page.$$("main script")).length, 0, "scripts");
        }));
}

/** @param {Room} room */
async function checkClipboard({browser, filled, report}) {
    const body = {input: [-1, "-Infinity", -0.5], target: [1, 2, 3], target_space: "logit", base: 2,
                  dim: -1, weight: 2};
    /** @param {Page} page */
    const filledIn = async page => {
        await waitForText(page, /Both fields were filled\. Left out: weight/);
        expectSame(await figureOf(page), Infinity, "figure");
        const fields = await page.$$eval("main textarea, main select", all =>
            all.map(each => each.value));
        expectSame(fields.join("|"), "-1\t-Infinity\t-0.5|log_prob|1\t2\t3|logit|2", "fields");
    };
    await report.check("“Paste JSON” fills both fields from a body of /kl_div", () =>
        visiting(browser, `${filled.url}/`, {}, async ({page}) => {
            await page.browserContext().overridePermissions(
                filled.url, ["clipboard-read", "clipboard-sanitized-write"]);
            await figureOf(page);
            await page.evaluate(text => navigator.clipboard.writeText(text), JSON.stringify(body));
            await click(page, "button", "Paste JSON");
            await filledIn(page);
        }));
    await report.check("so does a paste into a field; without leave the button says what to do", () =>
        visiting(browser, `${filled.url}/`, {}, async ({page}) => {
            await figureOf(page);
            await page.$eval("#current", (field, text) => {
                const data = new DataTransfer();
                data.setData("text/plain", text);
                field.dispatchEvent(
                    new ClipboardEvent("paste", {clipboardData: data, cancelable: true}));
            }, JSON.stringify(body));
            await filledIn(page);
            await page.evaluate(() => Object.defineProperty(navigator, "clipboard", {value: undefined}));
            await click(page, "button", "Paste JSON");
            return (await waitForText(page, /The browser does not let.*/))[0];
        }));
}

/** @param {Room} room */
async function checkMemory({browser, filled, report}) {
    await report.check("a reload keeps the fields, and a link brings them to another", async () => {
        const url = await visiting(browser, `${filled.url}/`, {}, async ({page}) => {
            await figureOf(page);
            await set(page, {reference: "1 2 3", current: "3 2 1", base: "2"});
            const seen = await figureOf(page);
            await page.reload();
            expectSame(await figureOf(page), seen, "figure after a reload");
            await click(page, "link", "Monitors");
            await page.waitForFunction(() => location.pathname.endsWith("/dashboard/"));
            await click(page, "link", "Calculator");
            await page.waitForFunction(() => location.hash.length > 1);
            expectSame(await figureOf(page), seen, "figure after another page");
            return page.url();
        });
        return visiting(browser, url, {}, async ({page}) => {
            expectNear(await figureOf(page), Math.log2(3) / 3, "figure by the link");
            await click(page, "button", "Swap");
            expectNear(await figureOf(page), Math.log2(3) / 3, "figure swapped");
            expectSame(await page.$eval("textarea", field => field.value), "3 2 1", "reference");
            return url.slice(filled.url.length);
        });
    });
}

/** @param {Room} room */
async function checkLinks({browser, filled, report}) {
    for (const [hash, sides] of /** @type {[string, [number[], number[]]][]} */ ([
        ["#toString=1", [[120, 310, 270, 190, 110], [14, 25, 30, 29, 42]]],
        ["#__proto__=1&reference=1+2&current=3+4", [[1, 2], [3, 4]]],
    ]))
        await report.check(`a link that names no field of its own, ${hash}`, () =>
            visiting(browser, `${filled.url}/${hash}`, {}, async ({page}) =>
                expectNear(await figureOf(page), divergence(...sides, counts(0)), "figure")));
}

/** @param {Room} room */
async function checkAbsence({binary, browser, filled, report}) {
    await report.check("offline is told, and it recovers", () =>
        visiting(browser, `${filled.url}/`, {expected: [/./]}, async ({page}) => {
            const seen = await figureOf(page);
            await page.setOfflineMode(true);
            await click(page, "button", "Swap");
            const [told] = await waitForText(page, /Offline.*/);
            await page.setOfflineMode(false);
            await waitForText(page, /Jensen/);
            await click(page, "button", "Swap");
            await page.waitForFunction(value => document.querySelector("data")?.value === value, {},
                                       String(seen));
            return told;
        }));
    await report.check("a token may be refused to the page, is asked for when wanted, is in no address",
                       async () => {
        const token = "calculator-token-0123456789";
        const folder = makeFolder(), file = join(folder, "tokens");
        writeFileSync(file, `owner ${token}\n`, {mode: 0o600});
        const server = await startServer(binary, ["--auth-token-file", file], folder);
        const told = await visiting(browser, `${server.url}/`, {expected: [/401/]}, async visit => {
            const {page} = visit;
            await find(page, "dialog");
            await page.keyboard.press("Escape");
            const [text] = await waitForText(page, /Unauthorised.*/);
            await set(page, {current: "1 2 3 4 5"});
            await page.waitForNetworkIdle({idleTime: 500});
            expectSame((await findAll(page, "dialog")).length, 0, "dialogs while typing");
            await click(page, "button", /try again/i);
            await fill(page, /token/i, token);
            await page.keyboard.press("Enter");
            const seen = await figureOf(page);
            const command = await commandOf(page);
            expect(!command.includes(token), "the token is in the command");
            expectSame(lossBy(`KLDIV_TOKEN=${token}\n${command}`), seen, "by curl");
            const addresses = [page.url(), ...visit.requests.map(({url}) => url.href)];
            expect(!addresses.some(url => url.includes(token)), "the token is in an address");
            return text;
        });
        await server.stop();
        return told;
    });
}

/** @param {Room} room */
export async function checkCalculator(room) {
    await checkFirst(room);
    await checkFigures(room);
    await checkWords(room);
    await checkClipboard(room);
    await checkMemory(room);
    await checkLinks(room);
    await checkAbsence(room);
}
