// Debian's Chromium without a window, and pages whose faults are counted.
import {mkdirSync} from "node:fs";
import {fileURLToPath} from "node:url";
import {launch} from "puppeteer-core";
import {expect} from "./report.mjs";

/**
 * @typedef {import("puppeteer-core").Browser} Browser
 * @typedef {import("puppeteer-core").Page} Page
 *
 * @typedef {object} Conditions  how a page is looked at
 * @property {"light" | "dark"} [theme]  what the system prefers
 * @property {number} [width]
 * @property {number} [height]
 * @property {boolean} [still]  the system prefers reduced motion
 * @property {boolean} [script]  false: JavaScript is off
 * @property {number} [haste]  how many times faster the clock of the page goes
 * @property {string} [zone]  time zone of the system, as Asia/Kolkata
 * @property {RegExp[]} [expected]  faults that this visit provokes, as console text
 */

const PICTURES = fileURLToPath(new URL("../../../build/page/", import.meta.url));
const WAIT_MS = 30_000;

/**
 * Starts Chromium. Its sandbox needs rights that root does not have in a container. The shell has
 * no windows, which cost three quarters of the time to open a page even where nobody sees them.
 */
export function startBrowser() {
    mkdirSync(PICTURES, {recursive: true});
    return launch({executablePath: "/usr/bin/chromium-headless-shell", headless: "shell",
                   acceptInsecureCerts: true,
                   args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
                          "--disable-dev-shm-usage", "--force-color-profile=srgb"]});
}

/**
 * One page in a profile of its own, with what it asked for and what went wrong in it: violations of
 * the Content-Security-Policy, errors of the console and of scripts, requests that failed or that
 * left the origin.
 */
export class Visit {
    /** @type {string[]} */
    problems = [];
    /** @type {{method: string, url: URL, type: string, status: number}[]} */
    requests = [];

    /**
     * @param {Page} page
     * @param {string} origin
     * @param {RegExp[]} expected
     */
    constructor(page, origin, expected) {
        this.page = page;
        this.origin = origin;
        this.expected = expected;
    }

    /** @param {string} text */
    tell(text) {
        if (!this.expected.some(pattern => pattern.test(text))) this.problems.push(text);
    }

    /** Requests that went to the API, and not for a file of the page. */
    calls() {
        return this.requests.filter(({type}) => type === "fetch" || type === "xhr");
    }

    /**
     * Writes build/page/NAME.png.
     * @param {string} name
     * @param {boolean} whole  the whole document, and not what the window shows of it
     */
    async picture(name, whole = false) {
        await this.page.screenshot({path: `${PICTURES}${name}.png`, fullPage: whole});
    }

    async close() {
        await this.page.browserContext().close();
    }
}

/** @param {Visit} visit */
function watch(visit) {
    const {page} = visit;
    page.on("console", message => {
        const {url = ""} = message.location();
        if (message.type() === "error" || /Content.Security.Policy/i.test(message.text()))
            visit.tell(`console: ${message.text()} ${url}`);
    });
    page.on("pageerror", error => visit.tell(`script: ${error}`));
    page.on("request", request => {
        const url = new URL(request.url());
        if (url.origin !== visit.origin && !["data:", "blob:", "about:"].includes(url.protocol))
            visit.tell(`left the origin: ${url}`);
    });
    page.on("requestfailed", request => {
        const reason = request.failure()?.errorText ?? "";
        if (reason !== "net::ERR_ABORTED")
            visit.tell(`request: ${request.url()} ${reason}`);
    });
    page.on("response", answer => {
        const request = answer.request(), status = answer.status();
        visit.requests.push({method: request.method(), url: new URL(answer.url()),
                             type: request.resourceType(), status});
        if (status >= 400) visit.tell(`answer: ${status} ${request.method()} ${answer.url()}`);
    });
}

/**
 * Reports violations to this process: the policy does not hold for what a debugger puts in.
 * @param {Visit} visit
 */
async function watchPolicy(visit) {
    await visit.page.exposeFunction("tellViolation",
                                    (/** @type {string} */ text) => visit.tell(`policy: ${text}`));
    await visit.page.evaluateOnNewDocument(() => {
        document.addEventListener("securitypolicyviolation", event => {
            const {effectiveDirective, blockedURI, sourceFile, lineNumber} = event;
            // @ts-expect-error: exposed above
            tellViolation(`${effectiveDirective} ${blockedURI} ${sourceFile}:${lineNumber}`);
        });
    });
}

/**
 * Makes the page's clock and timers go faster, so that nobody waits for what comes in 10 s.
 * @param {number} haste
 */
function hurry(haste) {
    const {setTimeout: later, setInterval: often} = window;
    const now = Date.now, start = now();
    Date.now = () => start + (now() - start) * haste;
    window.setTimeout = /** @type {typeof setTimeout} */ (
        (/** @type {() => void} */ call, ms = 0) => later(call, ms / haste));
    window.setInterval = /** @type {typeof setInterval} */ (
        (/** @type {() => void} */ call, ms = 0) => often(call, ms / haste));
}

/** Makes storage throw, as where a browser refuses it to a page. @param {Page} page */
export function refuseStorage(page) {
    return page.evaluateOnNewDocument(() => {
        for (const name of ["sessionStorage", "localStorage"])
            Object.defineProperty(window, name, {get() {
                throw new DOMException("refused", "SecurityError");
            }});
    });
}

/**
 * Changes the window and what the system prefers.
 * @param {Page} page
 * @param {Conditions} conditions
 */
export async function emulate(page, conditions) {
    const {theme = "light", width = 1280, height = 900, still = false} = conditions;
    await page.setViewport({width, height});
    await page.emulateMediaFeatures([
        {name: "prefers-color-scheme", value: theme},
        {name: "prefers-reduced-motion", value: still ? "reduce" : "no-preference"},
    ]);
}

/**
 * Opens an empty page in a new profile.
 * @param {Browser} browser
 * @param {string} origin  where its requests may go
 * @param {Conditions} conditions
 */
export async function openVisit(browser, origin, conditions = {}) {
    const {script = true, haste, zone, expected = []} = conditions;
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    await emulate(page, conditions);
    if (haste) await page.evaluateOnNewDocument(hurry, haste);
    if (zone) await page.emulateTimezone(zone);
    const visit = new Visit(page, new URL(origin).origin, expected);
    watch(visit);
    if (script) await watchPolicy(visit);
    else await page.setJavaScriptEnabled(false);
    return visit;
}

/**
 * Opens a page, and closes it after `body`. Fails if anything went wrong in it that `conditions` do
 * not expect, whatever `body` has looked at.
 * @template T
 * @param {Browser} browser
 * @param {string} url
 * @param {Conditions} conditions
 * @param {(visit: Visit) => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function visiting(browser, url, conditions, body) {
    const visit = await openVisit(browser, url, conditions);
    try {
        await visit.page.goto(url);
        const seen = await body(visit);
        expect(visit.problems.length === 0, "faults of the page");
        return seen;
    } catch (error) {
        if (error instanceof Error && visit.problems.length > 0)
            error.message += ` [${visit.problems.slice(0, 5).join("; ")}]`;
        throw error;
    } finally {
        await visit.close();
    }
}
