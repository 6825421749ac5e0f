// A message to Slack as a picture: what the server sends to a receiver here, laid out as Slack lays its blocks out.
import {once} from "node:events";
import {writeFileSync} from "node:fs";
import {createServer} from "node:http";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {text} from "node:stream/consumers";
import {Api, monitorPath} from "./api.mjs";
import {makeFolder, startServer} from "./server.mjs";

/** @typedef {import("puppeteer-core").Browser} Browser */

/** Colours of the emoji of Slack, by name. @type {Record<string, string>} */
const DISCS = {white_circle: "#e8e8e8", large_green_circle: "#78b159", large_yellow_circle: "#fdcb58", red_circle: "#dd2e44",
               black_circle: "#31373d"};

/** What the server sends of two monitors that become critical. @param {string} binary */
async function messageOf(binary) {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const {port} = /** @type {import("node:net").AddressInfo} */ (listener.address());
    const arrived = once(listener, "request");
    const folder = makeFolder();
    const file = join(folder, "notify.json");
    writeFileSync(file, JSON.stringify([{name: "risk", format: "slack", url: `http://127.0.0.1:${port}/`}]));
    const server = await startServer(binary, ["--notify", file, "--public-url", "https://kldiv.example"], folder);
    const api = new Api(server.url);
    const labels = ["branch", "phone", "web"];
    await api.put(monitorPath("credit", "channel"), {bins: {labels}, reference: {counts: [350, 250, 400]}});
    await api.put(monitorPath("credit", "income"), {bins: {edges: [0, 1000, 2000, 5000]},
                                                    reference: {counts: [300, 500, 200]}});
    for (const [name, body] of /** @type {[string, object][]} */ ([
        ["channel", {counts: [350, 240, 410]}], ["income", {counts: [310, 480, 210]}],
        ["channel", {values: [...Array(40).fill("branch"), ...Array(30).fill("web"), ...Array(30).fill("partner")]}],
        ["income", {counts: [260, 440, 170], missing: 130}],
    ]))
        await api.post(`${monitorPath("credit", name, "observations")}?timestamp=2025-11-20T12:00:00Z`, body);
    const [request, response] = await arrived;
    const message = JSON.parse(await text(request));
    response.end("ok");
    await sleep(200);
    await server.stop();
    listener.close();
    return message;
}

/** @typedef {{type: string, name: string, text: string, url: string, style?: {bold: boolean}}} Element of rich text */

/** An element of Slack's rich text as HTML. @param {Element} element */
function htmlOf({type, name, text = "", url, style}) {
    const escaped = text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    const shown = style?.bold ? `<b>${escaped}</b>` : escaped;
    return type === "emoji" ? `<em style="background: ${DISCS[name]}"></em>` : type === "link" ? `<a href="${url}">${shown}</a>` : shown;
}

/**
 * @param {Browser} browser
 * @param {string} binary
 * @param {string} path  of the picture
 */
export async function pictureOfSlack(browser, binary, path) {
    const {blocks} = await messageOf(binary);
    const sections = blocks.map((/** @type {{elements: {elements: Element[]}[]}} */ {elements: [{elements}]}) =>
        `<p>${elements.map(htmlOf).join("")}</p>`);
    const page = await browser.newPage();
    await page.setViewport({width: 720, height: 200, deviceScaleFactor: 2});
    await page.setContent(`<!doctype html><meta charset="utf-8"><style>
        body { font: 15px/1.46 Lato, "Helvetica Neue", Arial, sans-serif; color: #1d1c1d; margin: 16px;
               display: grid; grid-template-columns: 36px 1fr; gap: 0 8px; }
        i { width: 36px; height: 36px; border-radius: 4px; background: #1657b8; color: #fff; display: grid;
            place-items: center; font: 700 15px sans-serif; }
        h1 { font-size: 15px; margin: 0; } small { font-size: 11px; color: #616061; font-weight: 400; }
        small b { background: #ddd; padding: 1px 3px; border-radius: 2px; font-size: 10px; }
        em { display: inline-block; width: 15px; height: 15px; border-radius: 50%; vertical-align: -2px; }
        p { margin: 4px 0; } a { color: #1264a3; text-decoration: none; }
        </style><i>KL</i><main><h1>kldiv <small><b>APP</b> 12:00</small></h1>${sections.join("")}</main>`);
    await page.screenshot({path, clip: {x: 0, y: 0, width: 720,
        height: await page.evaluate(() => document.querySelector("main")?.getBoundingClientRect().bottom ?? 0) + 16}});
    await page.close();
}
