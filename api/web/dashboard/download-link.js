/* Links that download a response of the API; with a token, calls that can send it. */
import { address, request } from "./api.js";
import { element, visible } from "./dom.js";
import { token } from "./token.js";

/**
 * Saves a response as a file.
 *
 * @param {URL} url
 * @param {string} name
 */
async function save(url, name) {
    const blob = await (await request("GET", url)).blob();
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
}

/**
 * @param {string} text
 * @param {string[]} path
 * @param {import("./api.js").Query} query
 * @param {string} called name of the file
 */
export function downloadLink(text, path, query, called) {
    const name = visible(called);
    const url = address(path, query);
    const link = element("a", { href: url, download: name }, text);
    link.addEventListener("click", (event) => {
        if (!token())
            return;
        event.preventDefault();
        save(url, name).catch((error) => (link.textContent = `${text}: ${error.message}`));
    });
    return link;
}
