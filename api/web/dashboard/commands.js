/* Command lines to copy. */
import { root } from "./api.js";
import { element } from "./dom.js";
import { token } from "./token.js";

/**
 * Quotes a word for a POSIX shell.
 *
 * @param {string} text
 */
export function quote(text) {
    return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A curl command; the token is left to the reader's environment.
 *
 * @param {string[]} words
 */
export function curl(...words) {
    const header = token() ? ["-H", '"Authorization: Bearer $KLDIV_TOKEN"'] : [];
    return ["curl", ...header, ...words.map(quote)].join(" ");
}

/**
 * A button that copies a text.
 *
 * @param {string} name
 * @param {() => string} text
 * @param {() => void} select shows the text, selected, where the clipboard is refused: over plain HTTP from another machine
 */
export function copyButton(name, text, select) {
    const button = element("button", { type: "button", click: async () => {
        try {
            await navigator.clipboard.writeText(text());
            button.textContent = "Copied";
        } catch {
            select();
            button.textContent = "Selected";
        }
        setTimeout(() => (button.textContent = name), 2000);
    } }, name);
    return button;
}

/**
 * A command with a button that copies it.
 *
 * @param {string} text
 * @param {string} [label] what the command does
 */
export function command(text, label = "Command") {
    const code = element("code", {}, text);
    return element("div", { class: "command" },
        element("pre", { tabindex: 0, "aria-label": label, role: "region" }, code),
        copyButton("Copy", () => text, () => getSelection()?.selectAllChildren(code)));
}

/** The two commands that make monitors and feed them. */
export function curlLines() {
    const group = new URL("monitors/credit", root).href;
    return [
        command(curl("-T", "reference.csv", group), "Make a monitor for each column"),
        command(curl("--data-binary", "@this-week.csv", `${group}/observations`),
            "Score a batch"),
    ];
}
