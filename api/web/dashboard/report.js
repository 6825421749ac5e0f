/* What is shown as one file: for a ticket or a mail. No scripts, nothing loaded from elsewhere. */
import { element } from "./dom.js";
import { time } from "./format.js";

/** What a file cannot do anything with. */
const LIVE = "button, dialog, input, select, .freshness, .filters, .command, .crumbs, details:not([open])";

/** The style sheets of this page, as text. */
function styles() {
    return [...document.styleSheets].map((sheet) => [...sheet.cssRules].map((rule) => rule.cssText).join("\n")).join("\n");
}

/** A copy of what is shown, as text, with pictures in place of canvases. */
function copy() {
    const main = /** @type {HTMLElement} */ (document.querySelector("main"));
    const clone = /** @type {HTMLElement} */ (main.cloneNode(true));
    const canvases = [...main.querySelectorAll("canvas")];
    [...clone.querySelectorAll("canvas")].forEach((canvas, i) =>
        canvas.replaceWith(element("i", { "data-canvas": i })));
    for (const link of clone.querySelectorAll("a"))
        link.href = new URL(link.getAttribute("href") ?? "", location.href).href;
    for (const term of clone.querySelectorAll(".term"))
        term.replaceWith(term.querySelector("button")?.textContent ?? "");
    clone.querySelectorAll(LIVE).forEach((node) => node.remove());
    return clone.outerHTML.replace(/<i data-canvas="(\d+)"><\/i>/g, (_, i) => {
        const { width, height } = canvases[Number(i)].getBoundingClientRect();
        return `<img alt="" width="${width}" height="${height}" src="${canvases[Number(i)].toDataURL()}">`;
    });
}

/** @param {string} text */
function escape(text) {
    return element("p", {}, text).innerHTML.replaceAll('"', "&quot;");
}

/**
 * Saves what is shown as a file. It is made as text: the policy of this page holds for its elements.
 *
 * @param {string} name of what it is about
 */
export function saveReport(name) {
    const { theme = "auto" } = document.documentElement.dataset;
    const from = escape(location.href);
    const text = `<!doctype html>
<html lang="en" data-theme="${theme}">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>${escape(document.title)}</title>
<style>${styles()}</style>
${copy()}
<footer>Saved ${escape(time(Date.now()))} from <a href="${from}">${from}</a></footer>
</html>
`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/html" }));
    const file = name.replace(/[^\p{L}\p{N}._-]+/gu, "-");
    element("a", { href: url, download: `${file}-${new Date().toISOString().slice(0, 10)}.html` }).click();
    URL.revokeObjectURL(url);
}
