// The journey by clicks alone: a reference, its bins, a batch, the column that is shifted, and why.
import {writeFileSync} from "node:fs";
import {join} from "node:path";
import {gzipSync} from "node:zlib";
import {Api, monitorPath} from "./api.mjs";
import {auditAccess} from "./audit.mjs";
import {emulate, visiting} from "./browser.mjs";
import {loans} from "./fixtures.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, find, textOf, waitForText} from "./roles.mjs";
import {startServer} from "./server.mjs";
import {shown} from "./monitor.mjs";
import {toCsv} from "./tables.mjs";

/**
 * @typedef {import("./run.mjs").Room} Room
 * @typedef {import("puppeteer-core").Page} Page
 * @typedef {(page: Page, label: RegExp, path: string) => Promise<void>} Give  hands over a file
 */

/**
 * Chooses a file in the dialog that a click on the label opens.
 * @type {Give}
 */
async function choose(page, label, path) {
    const opened = page.waitForFileChooser();
    await click(page, "button|LabelText|generic", label).catch(() =>
        page.click("::-p-xpath(//label[contains(., 'able') or starts-with(., 'Batch')])"));
    await (await opened).accept([path]);
}

/**
 * Drops a file, as from a desktop: the chooser gets it first, and it is then dropped around it.
 * @type {Give}
 */
async function drop(page, label, path) {
    const inputs = await page.$$("input[type=file]");
    for (const input of inputs) {
        const named = await input.evaluate((element, pattern) =>
            [...(element.labels ?? [])].some(each => new RegExp(pattern, "i").test(
                each.textContent ?? "")), label.source);
        if (!named) continue;
        await input.evaluate(element => element.addEventListener("change", event => {
            event.stopImmediatePropagation();
            const carried = new DataTransfer();
            carried.items.add(/** @type {FileList} */ (element.files)[0]);
            const place = /** @type {Element} */ (element.parentElement);
            for (const type of ["dragenter", "dragover", "drop"])
                place.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true,
                                                         dataTransfer: carried}));
        }, {capture: true, once: true}));
        await input.uploadFile(path);
        return;
    }
    throw new Error(`no place for ${label}`);
}

/**
 * @param {Room} room
 * @param {Give} give
 * @param {string} group
 */
async function travel({binary, browser}, give, group) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    const reference = join(server.folder, "reference.csv");
    const batch = join(server.folder, "batch.csv");
    writeFileSync(reference, toCsv(loans(1)));
    writeFileSync(batch, toCsv(loans(3, {income: 1})));
    try {
        return await visiting(browser, `${server.url}/dashboard/`, {}, async visit => {
            const {page} = visit;
            await click(page, "link", "Add monitors");
            await give(page, /reference/i, reference);
            await waitForText(page, /5 monitors/);
            for (const name of Object.keys(loans(1, {n: 1}))) await find(page, "heading", name);
            await waitForText(page, /5 labels: .*/);
            const {monitors} = await api.get("/monitors");
            expectSame(monitors.length, 0, "monitors made by the preview");
            await visit.picture(`proposal-${give.name}`, true);
            await auditAccess(page);
            await fill(page, /group/i, group);
            await click(page, "button", /create/i);
            await find(page, "heading", /batch/i);
            await give(page, /^batch/i, batch);
            await find(page, "heading", /verdicts on the batch/i);
            await visit.picture(`results-${give.name}`, true);
            await auditAccess(page);
            const {first, above} = await page.evaluate(() => {
                const row = [...document.querySelectorAll("main h2")].find(each => each.textContent?.includes("Verdicts"))
                    ?.parentElement?.querySelector("tbody tr");
                const preview = document.querySelector("main .small");
                return {first: row?.textContent ?? "",
                        above: row && preview && row.getBoundingClientRect().top < preview.getBoundingClientRect().top};
            });
            expect(/^income.*critical/.test(first), `first row: ${first}`);
            expect(above, "the verdicts stand above the previews");
            await click(page, "link", "income");
            await shown(page);
            const path = monitorPath(group, "income", "windows", "latest");
            const {sentence} = await api.get(path);
            expect((await textOf(page)).includes(sentence), `not told: ${sentence}`);
            await page.goBack();
            await find(page, "heading", /add monitors/i);
            return sentence;
        });
    } finally {
        await server.stop();
    }
}

/** @param {Room} room */
async function checkRefusals({binary, browser, report}) {
    const server = await startServer(binary);
    const broken = join(server.folder, "broken.csv");
    writeFileSync(broken, "a,b\n1,2\n1\n");
    await report.check("a table that is broken is refused with its line", () =>
        visiting(browser, `${server.url}/dashboard/?add`, {expected: [/400/]}, async ({page}) => {
            await choose(page, /reference/i, broken);
            const alert = await find(page, "alert");
            const [told] = await waitForText(page, /.*line 3.*/);
            return `${alert.role}: ${told}`;
        }));
    await server.stop();
}

/**
 * Values of the form, as JSON.
 * @param {Page} page
 */
function formOf(page) {
    return page.$eval("main form.fields", form => JSON.stringify(
        [...form.querySelectorAll("input, select")].map(each =>
            /** @type {HTMLInputElement} */ (each).value)));
}

/** @param {Room} room */
async function checkReplacing({binary, browser, report}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    const table = loans(1), {age, income} = table;
    const reference = join(server.folder, "credit.csv");
    const batch = join(server.folder, "batch.csv");
    writeFileSync(reference, toCsv(table));
    writeFileSync(batch, toCsv({age, income}));
    await api.put(monitorPath("credit"), toCsv({age, income}));
    await report.check("monitors that would be replaced are told; the form outlives a change of theme",
                       () => visiting(browser, `${server.url}/dashboard/?add`, {}, async ({page}) => {
        await choose(page, /reference/i, reference);
        const [told] = await waitForText(page, /“Replace them” gives 2 monitors .*/);
        await find(page, "button", "Replace them");
        await fill(page, /number of bins/i, "7");
        await page.keyboard.press("Tab");
        await page.waitForNetworkIdle({idleTime: 200});
        const before = await formOf(page);
        await emulate(page, {theme: "dark"});
        expectSame(await formOf(page), before, "form in the dark");
        await waitForText(page, /5 monitors of [\d,]+ rows, with these bins/);
        await fill(page, /group/i, "another");
        await page.keyboard.press("Tab");
        await find(page, "button", "Create the monitors");
        expect(!/group exists/.test(await textOf(page)), "still told for another name");
        return told;
    }));
    await report.check("Enter in the name of a group that is there does not replace it yet", () =>
        visiting(browser, `${server.url}/dashboard/?add`, {}, async ({page, requests}) => {
            await choose(page, /reference/i, reference);
            await fill(page, /name of the group/i, "another");
            await page.keyboard.press("Tab");
            await find(page, "button", "Create the monitors");
            await fill(page, /name of the group/i, "credit");
            await page.keyboard.press("Enter");
            await waitForText(page, /“Replace them” gives 2 monitors .*/);
            await page.waitForNetworkIdle({idleTime: 200});
            const written = requests.filter(({method, url}) =>
                method === "PUT" && url.searchParams.get("dry_run") !== "true");
            expectSame(written.length, 0, "PUTs that are no dry runs");
        }));
    await report.check("monitors that would be replaced are named", () =>
        visiting(browser, `${server.url}/dashboard/?add`, {}, async ({page}) => {
            await choose(page, /reference/i, reference);
            const [told] = await waitForText(page, /“Replace them” gives .*/);
            for (const name of ["age", "income"])
                expect(new RegExp(`\\b${name}\\b`).test(told), `${name} is not named: ${told}`);
            return told;
        }));
    await report.check("columns that a batch lacks are named", () =>
        visiting(browser, `${server.url}/dashboard/?add`, {}, async ({page}) => {
            await choose(page, /reference/i, reference);
            await find(page, "heading", /with these bins/i);
            await click(page, "button", /create|replace/i);
            await find(page, "heading", /batch/i);
            await choose(page, /^batch/i, batch);
            const [told] = await waitForText(page, /The batch has no values of .*/);
            for (const name of ["score", "balance", "region"])
                expect(told.includes(name), `${name} is not named: ${told}`);
            expect(!/\bage|income/.test(told), `told: ${told}`);
            return told;
        }));
    await server.stop();
}

/** A table whose rows have days goes to a window for each. @param {Room} room */
async function checkTimes({browser, report, binary}) {
    const server = await startServer(binary);
    const path = join(server.folder, "year.csv");
    const rows = Array.from({length: 800}, (_, i) =>
        `2025-${String(1 + i % 12).padStart(2, "0")}-${String(1 + i % 28).padStart(2, "0")},${(i * 7919) % 1000 / 10}`);
    writeFileSync(path, `created_at,age\n${rows.join("\n")}\n`);
    await report.check("a column of dates sends each row to its own window", () =>
        visiting(browser, `${server.url}/dashboard/?add`, {}, async ({page, requests}) => {
            await choose(page, /reference/i, path);
            await find(page, "heading", /with these bins/i);
            await page.select("#window", "1w,1h");
            await click(page, "button", /create/i);
            await find(page, "heading", /batch/i);
            expectSame(await page.$eval("#time", each => /** @type {HTMLSelectElement} */ (each).value), "created_at",
                       "the column that is chosen");
            await choose(page, /^batch/i, path);
            const [told] = await waitForText(page, /Windows of all monitors: .*/);
            const sent = requests.filter(({method, url}) => method === "POST" && url.pathname.endsWith("/observations"));
            expectSame(sent.map(({url}) => url.search).join(), "?time=created_at", "parameters");
            return told;
        }));
    await server.stop();
}

/** Two files, one of them compressed, or of a sample: verdicts, and nothing is stored. @param {Room} room */
async function checkFiles({browser, report, binary}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    const last = join(server.folder, "last month.csv");
    const current = join(server.folder, "this.csv.gz");
    writeFileSync(last, toCsv({...loans(1), old: loans(1).age}));
    writeFileSync(current, gzipSync(toCsv({...loans(3, {income: 1}), id: loans(3).age})));
    await report.check("two files are compared, and nothing is stored", () =>
        visiting(browser, `${server.url}/dashboard/`, {}, async visit => {
            const {page} = visit;
            await click(page, "link", "Compare");
            await choose(page, /reference/i, last);
            await choose(page, /current/i, current);
            const [told] = await waitForText(page, /1 of 5 columns drifts/);
            await waitForText(page, /id: the reference has no such column/);
            await waitForText(page, /old: the current table has no such column/);
            const first = await page.$eval("main tbody tr", row => row.textContent ?? "");
            expect(/^income.*critical.*mean .* → /.test(first), `first row: ${first}`);
            await waitForText(page, /kldiv 'last month.csv' this.csv.gz --html report.html/);
            await auditAccess(page);
            await visit.picture("two-files", true);
            const {monitors} = await api.get("/monitors");
            expectSame(monitors.length, 0, "monitors that were made");
            await click(page, "link", "Monitors");
            await page.goBack();
            await click(page, "button", "Use a sample");
            const [sample] = await waitForText(page, /\d of 4 columns drifts?/);
            return `${told}; ${sample}`;
        }));
    const dated = join(server.folder, "dated.csv");
    const rows = Array.from({length: 300}, (_, i) => `${i % 7},2025-${String(1 + i % 12).padStart(2, "0")}-${10 + i % 18}`);
    writeFileSync(dated, `n,day\n${rows.join("\n")}\n`);
    await report.check("a column of dates is watched for missing values, by a click for its values", () =>
        visiting(browser, `${server.url}/dashboard/?add`, {}, async ({page}) => {
            await choose(page, /reference/i, dated);
            await waitForText(page, /2 monitors of [\d,]+ rows, with these bins.*day\s+values, and missing ones/s);
            await click(page, "button", "Watch the values of day");
            return (await waitForText(page, /2 monitors of [\d,]+ rows, with these bins.*day\s+\d+ intervals/s))[0].slice(0, 60);
        }));
    await report.check("a file that is no table is refused, and names the reason", () =>
        visiting(browser, `${server.url}/dashboard/?files`, {expected: [/4\d\d/]}, async ({page}) => {
            const broken = join(server.folder, "broken.csv");
            writeFileSync(broken, "a,b\n1,2\n1\n");
            await choose(page, /reference/i, broken);
            await choose(page, /current/i, last);
            return (await waitForText(page, /.*line 3.*/))[0];
        }));
    await server.stop();
}

/** @param {Room} room */
export async function checkJourney(room) {
    await room.report.check("by choosing files: from no monitors to why income is critical", () =>
        travel(room, choose, "credit"));
    await room.report.check("by dropping files, into a group of an unusual name", () =>
        travel(room, drop, "prêts / 😀 <b>"));
    await checkRefusals(room);
    await checkReplacing(room);
    await checkTimes(room);
    await checkFiles(room);
}
