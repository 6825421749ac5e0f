/* What is shown as one file: for a ticket or a mail. No scripts, nothing loaded from elsewhere. */
import { element } from "./dom.js";
import { time } from "./format.js";

/** What a file cannot do anything with. */
const LIVE = "button, dialog, input, select, .freshness, .filters, .command, .crumbs, details:not([open])";

/** The style sheets of this page, as text. */
function styles() {
    return [...document.styleSheets].map((sheet) => [...sheet.cssRules].map((rule) => rule.cssText).join("\n")).join("\n");
}

/** A copy of what is shown, with pictures in place of canvases. */
function copy() {
    const main = /** @type {HTMLElement} */ (document.querySelector("main"));
    const clone = /** @type {HTMLElement} */ (main.cloneNode(true));
    const canvases = [...main.querySelectorAll("canvas")];
    [...clone.querySelectorAll("canvas")].forEach((canvas, i) => {
        const { width, height } = canvases[i].getBoundingClientRect();
        canvas.replaceWith(element("img", { src: canvases[i].toDataURL(), alt: "", width, height }));
    });
    for (const link of clone.querySelectorAll("a"))
        link.href = new URL(link.getAttribute("href") ?? "", location.href).href;
    for (const term of clone.querySelectorAll(".term"))
        term.replaceWith(term.querySelector("button")?.textContent ?? "");
    clone.querySelectorAll(LIVE).forEach((node) => node.remove());
    return clone;
}

/**
 * Saves what is shown as a file.
 *
 * @param {string} name of what it is about
 */
export function saveReport(name) {
    const page = document.implementation.createHTMLDocument(document.title);
    const { theme } = document.documentElement.dataset;
    page.documentElement.lang = "en";
    page.documentElement.dataset.theme = theme;
    const policy = page.createElement("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
    const style = page.createElement("style");
    style.textContent = styles();
    const charset = page.createElement("meta");
    charset.setAttribute("charset", "utf-8");
    page.head.prepend(charset, policy);
    page.head.append(style);
    page.body.append(page.importNode(copy(), true),
        page.importNode(element("footer", {}, `Saved ${time(Date.now())} from `,
            element("a", { href: location.href }, location.href)), true));
    const text = `<!doctype html>\n${page.documentElement.outerHTML}`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/html" }));
    element("a", { href: url, download: `${name.replace(/[^\p{L}\p{N}._-]+/gu, "-")}-${new Date().toISOString().slice(0, 10)}.html` }).click();
    URL.revokeObjectURL(url);
}
