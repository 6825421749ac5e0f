// Addresses of the pages: at the root with their headers, behind a path prefix, over TLS.
import {visiting} from "./browser.mjs";
import {startProxy} from "./proxy.mjs";
import {expect, expectSame} from "./report.mjs";
import {makeCertificate, makeFolder, startServer} from "./server.mjs";

/** pages: their addresses, relative to the root of the API. */
export const PAGES = ["", "dashboard/", "docs"];

/**
 * @param {import("puppeteer-core").Browser} browser
 * @param {string} url
 */
function openWithoutFaults(browser, url) {
    return visiting(browser, url, {}, async ({page, requests}) => {
        await page.waitForNetworkIdle({idleTime: 200});
        return `${requests.length} requests`;
    });
}

/** @param {import("./run.mjs").Room} room */
async function checkHeaders({binary, report}) {
    const server = await startServer(binary);
    for (const page of PAGES)
        await report.check(`headers of /${page}`, async () => {
            const answer = await fetch(`${server.url}/${page}`, {headers: {Accept: "text/html"}});
            const header = (/** @type {string} */ name) => answer.headers.get(name) ?? "";
            const policy = header("Content-Security-Policy");
            expect(/default-src 'none'.*frame-ancestors 'none'/.test(policy), `policy: ${policy}`);
            expect(!/unsafe|\*|https?:/.test(policy), `policy: ${policy}`);
            expectSame(header("X-Content-Type-Options"), "nosniff", "X-Content-Type-Options");
            expect(/Accept-Encoding/i.test(header("Vary")), `Vary: ${header("Vary")}`);
            expect(/^(W\/)?"/.test(header("ETag")), `ETag: ${header("ETag")}`);
        });
    await server.stop();
}

/** @param {import("./run.mjs").Room} room */
async function checkPrefix({binary, browser, report}) {
    const server = await startServer(binary);
    const proxy = await startProxy(server.url, "/company/drift");
    for (const page of PAGES)
        await report.check(`/${page} behind a path prefix`,
                           () => openWithoutFaults(browser, `${proxy.url}/${page}`));
    await report.check("nothing was asked outside of the prefix", () => {
        expectSame(proxy.strays.join(" "), "", "asked");
    });
    proxy.stop();
    await server.stop();
}

/** @param {import("./run.mjs").Room} room */
async function checkTls({binary, browser, report}) {
    const folder = makeFolder();
    const server = await startServer(binary, makeCertificate(folder), folder);
    for (const page of PAGES)
        await report.check(`/${page} over TLS`,
                           () => openWithoutFaults(browser, `${server.url}/${page}`));
    await server.stop();
}

/** @param {import("./run.mjs").Room} room */
export async function checkAddresses(room) {
    await checkHeaders(room);
    await checkPrefix(room);
    await checkTls(room);
}
