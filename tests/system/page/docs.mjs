// The contract to be tried out: operations of /docs by their examples, with nothing typed in.
import {readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {auditAccess, auditWidth} from "./audit.mjs";
import {emulate, openVisit, visiting} from "./browser.mjs";
import {startProxy} from "./proxy.mjs";
import {expect, expectSame} from "./report.mjs";
import {click, fill, find, waitForText} from "./roles.mjs";
import {makeFolder, startServer} from "./server.mjs";

/** @typedef {import("puppeteer-core").Page} Page */

const CHOICE = ".opblock-section-request-body select";

const contract = JSON.parse(readFileSync(new URL("../../../api/openapi.json", import.meta.url), "utf8"));

/** Where the page has an operation: in a part of its tag, or below its tag. @param {string} id */
function tagOf(id) {
    for (const path of Object.values(contract.paths))
        for (const {operationId, tags, "x-section": section} of Object.values(path))
            if (operationId === id) return section ?? tags[0];
    throw new Error(`no operation ${id}`);
}

/**
 * Opens an operation for trying it out. Swagger UI names its elements by tag and operationId. All that is unfolded slows
 * it down.
 * @param {Page} page
 * @param {string} id
 */
async function tryOut(page, id) {
    const tag = await page.waitForSelector(`.opblock-tag[data-tag="${tagOf(id)}"]`);
    if (await tag?.evaluate(element => element.getAttribute("data-is-open")) === "false") await tag?.click();
    const operation = await page.waitForSelector(`.opblock[id$="-${id}"]`);
    if (!operation) throw new Error(`no operation ${id}`);
    if (!await operation.$(".opblock-body"))
        await (await operation.$(".opblock-summary-control"))?.click();
    if (!await operation.$(".execute"))
        await (await operation.waitForSelector(".try-out__btn"))?.click();
    await operation.waitForSelector(".execute");
    return operation;
}

/** Closes what is open. @param {Page} page */
async function close(page) {
    await (await page.$(".opblock.is-open .opblock-summary-control"))?.click();
    await (await page.$(".opblock-tag[data-is-open=true]"))?.click();
}

/**
 * Executes an operation as it stands; fails if it is refused.
 * @param {Page} page
 * @param {string} id
 * @param {string} [type]  media type of the body; the first if absent
 */
async function execute(page, id, type) {
    const operation = await tryOut(page, id);
    if (type) {
        const choice = await operation.$(CHOICE);
        await choice?.select(type);
        await page.waitForFunction((select, value) => select?.value === value, {}, choice, type);
    }
    const answered = page.waitForResponse(
        answer => answer.request().resourceType() === "fetch" && answer.status() !== 308);
    await (await operation.$(".execute"))?.click();
    const answer = await answered, text = await answer.text().catch(() => "");
    expect(answer.ok() || answer.status() === 304, `${id}: ${answer.status()} ${text}`);
    return {text, url: new URL(answer.url()), request: answer.request()};
}

/** steps: operations in an order in which their examples succeed. */
const steps = [
    ["kl_div"], ["infer"], ["put_group"], ["observe_group"], ["put_monitor"], ["observe"],
    ["observe", "text/csv"], ["evaluate"], ["get_monitor"], ["get_window"], ["list_windows"],
    ["list_events"], ["renew_references"], ["list_monitors"], ["get_root"], ["get_metrics"],
    ["get_dashboard"], ["get_dashboard_file"], ["get_docs"], ["get_docs_file"],
    ["delete_monitor"], ["delete_group"],
];

/** @param {import("./run.mjs").Room} room @param {string} url */
async function checkExamples({browser, report}, url) {
    const origin = new URL(url).origin;
    const visit = await openVisit(browser, origin);
    await visit.page.goto(`${url}/docs`);
    for (const [id, type] of steps)
        await report.check(`${id}${type ? ` (${type})` : ""} by its example`, async () => {
            const sent = await execute(visit.page, id, type);
            expectSame(sent.url.search, "", "query");
            await close(visit.page);
        });
    await report.check("a loss by a form", async () => {
        const {text} = await execute(visit.page, "kl_div", "multipart/form-data");
        const {reduction, warnings} = JSON.parse(text);
        expectSame(reduction, "batchmean", "reduction");
        expectSame(warnings.length, 0, "warnings");
        await visit.picture("docs-form");
    });
    await report.check("nothing went wrong in the page", () => {
        expectSame(visit.problems.join("; "), "", "faults");
    });
    await visit.close();
}

/** @param {import("./run.mjs").Room} room @param {string} url */
async function checkFile({browser, report}, url) {
    const folder = makeFolder(), file = join(folder, "input.json");
    writeFileSync(file, "[[-3, -0.1]]");
    await report.check("a form with a file", () =>
        visiting(browser, `${url}/docs`, {expected: [/422/]}, async ({page}) => {
            const operation = await tryOut(page, "kl_div");
            await (await operation.$(CHOICE))?.select("multipart/form-data");
            const input = await operation.waitForSelector("input[aria-label='input as a file']");
            await /** @type {import("puppeteer-core").ElementHandle<HTMLInputElement>} */ (input)
                .uploadFile(file);
            const answered = page.waitForResponse(answer => answer.url().endsWith("/kl_div"));
            await (await operation.$(".execute"))?.click();
            const {code} = await (await answered).json();
            expectSame(code, "shape_mismatch", "code"); // the file has one row, the target two
        }));
}

/** @param {import("./run.mjs").Room} room */
async function checkToken({binary, browser, report}) {
    const folder = makeFolder(), file = join(folder, "tokens");
    const token = "0123456789abcdef0123456789abcdef";
    writeFileSync(file, `${token}\n`);
    const server = await startServer(binary, ["--auth-token-file", file], folder);
    const conditions = {expected: [/\b401\b/]};
    await report.check("a token is asked for, and again when it does no longer", () =>
        visiting(browser, `${server.url}/docs`, conditions, async ({page, requests}) => {
            await fill(page, "Token", token);
            await click(page, "button", "Use it");
            await execute(page, "kl_div");
            await page.evaluate(() => sessionStorage.setItem("kldiv.token", "another"));
            await (await page.$(".execute"))?.click();
            const input = await page.waitForSelector(".dialog-ux input, .dialog-ux .btn-done");
            expect(input, "no dialog");
            await click(page, "button", "Remove authorization");
            await (await page.waitForSelector(".dialog-ux input"))?.type(token);
            await click(page, "button", "Apply credentials");
            await (await page.$(".dialog-ux .btn-done"))?.click();
            await execute(page, "kl_div");
            expectSame(await page.evaluate(() => sessionStorage.getItem("kldiv.token")), token,
                       "kept");
            expect(!requests.some(({url}) => url.href.includes(token)), "a token in a URL");
        }));
    await server.stop();
}

/** @param {import("./run.mjs").Room} room @param {string} url */
async function checkFailure({browser, report}, url) {
    await report.check("a contract that does not come, and Retry", async () => {
        const visit = await openVisit(browser, url, {expected: [/\b503\b/]});
        let n = 0;
        await visit.page.setRequestInterception(true);
        visit.page.on("request", request =>
            request.url().endsWith("/openapi.json") && n++ === 0
                ? request.respond({status: 503, body: ""}) : request.continue());
        await visit.page.goto(`${url}/docs`);
        await waitForText(visit.page, /could not be loaded/);
        await auditAccess(visit.page);
        await Promise.all([visit.page.waitForNavigation(), click(visit.page, "button", "Retry")]);
        await waitForText(visit.page, /The loss of two tensors/);
        expectSame(visit.problems.join("; "), "", "faults");
        await visit.close();
    });
    await report.check("without JavaScript the page names the contract", () =>
        visiting(browser, `${url}/docs`, {script: false}, async ({page}) => {
            await find(page, "link", "openapi.json");
        }));
}

/** Both themes, wide and narrow: one page, which takes seconds to make, as it opens where the system is dark, and with a loss.
 * @param {import("./run.mjs").Room} room @param {string} url
 */
async function checkLooks({browser, report}, url) {
    const visit = await openVisit(browser, url, {theme: "dark"}), {page} = visit;
    await page.goto(`${url}/docs`);
    await page.waitForSelector(".dark-mode .opblock");
    for (const state of ["", ", with a loss"]) {
        if (state) await execute(page, "kl_div");
        for (const theme of /** @type {const} */ (["dark", "light"]))
            for (const width of [1280, 320])
                await report.check(`${theme}, ${width} px wide${state}`, async () => {
                    await emulate(page, {theme, width});
                    await page.waitForSelector(theme === "dark" ? ".dark-mode" : "html:not(.dark-mode)");
                    await page.evaluate(() => Promise.allSettled( // of colours, whose contrast changes
                        document.getAnimations().map(({finished}) => finished)).then(() => {}));
                    await auditAccess(page, state ? [".swagger-ui"] : []); /* its forms are not ours */
                    if (state) await visit.picture(`docs-${theme}-${width}`);
                    return auditWidth(page);
                });
    }
    await report.check("nothing went wrong in any look", () => {
        expectSame(visit.problems.join("; "), "", "faults");
    });
    await visit.close();
}

/** @param {import("./run.mjs").Room} room */
export async function checkDocs(room) {
    const server = await startServer(room.binary);
    await checkExamples(room, server.url);
    await checkFile(room, server.url);
    await checkFailure(room, server.url);
    await checkLooks(room, server.url);
    await checkToken(room);
    await room.report.check("operations are filtered by words of their path and summary", () =>
        visiting(room.browser, `${server.url}/docs`, {}, async ({page}) => {
            await page.waitForSelector(".operation-filter-input");
            await page.type(".operation-filter-input", "Compares tables");
            await page.waitForFunction(() => document.querySelectorAll(".opblock").length === 1);
            const path = await page.$eval(".opblock", each => each.textContent ?? "");
            expect(path.includes("compare"), `found: ${path}`);
            await page.$eval(".operation-filter-input", each => /** @type {HTMLInputElement} */ (each).select());
            await page.type(".operation-filter-input", "acknowledge group");
            await page.waitForFunction(() => /mute/.test(document.querySelector(".opblock")?.textContent ?? ""));
        }));
    const proxy = await startProxy(server.url, "/company/drift");
    await room.report.check("a loss behind a path prefix", () =>
        visiting(room.browser, `${proxy.url}/docs`, {}, async ({page}) => {
            const {url} = await execute(page, "kl_div");
            expectSame(url.pathname, "/company/drift/kl_div", "path");
            expectSame(proxy.strays.join(" "), "", "asked outside of the prefix");
        }));
    proxy.stop();
    await server.stop();
}
