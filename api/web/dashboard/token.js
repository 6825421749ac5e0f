/* The bearer token: asked for once, kept until the tab is closed. */
import { element } from "./dom.js";

const KEY = "kldiv.token";

/** Characters of a token (RFC 6750); another could not be sent. */
const FORM = "[\\-A-Za-z0-9._~+\\/]+=*";

/** The token where storage is refused to the page.
 * @type {string | null} */
let held = null;

export function token() {
    try {
        return sessionStorage.getItem(KEY);
    } catch {
        return held;
    }
}

/** Keeps a token, or forgets one that cannot be sent. @param {string} value */
export function keepToken(value) {
    held = new RegExp(`^${FORM}$`).test(value.trim()) ? value.trim() : null;
    try {
        if (held)
            sessionStorage.setItem(KEY, held);
        else
            sessionStorage.removeItem(KEY);
    } catch { /* It holds until the page is left. */ }
}

export function forgetToken() {
    keepToken("");
}

/** @type {Promise<boolean> | null} */
let asking = null;

/**
 * Asks for a token, once for all calls that wait for it. Resolves to false if the user gives none.
 *
 * @param {string | null} refused the token that did not do
 * @param {string} detail
 */
export async function askToken(refused, detail) {
    if (token() !== refused)
        return true;
    asking ??= ask(refused, detail).finally(() => (asking = null));
    return asking;
}

/**
 * @param {string | null} refused
 * @param {string} detail
 * @returns {Promise<boolean>}
 */
function ask(refused, detail) {
    const input = element("input", {
        id: "token", type: "password", autocomplete: "off", required: true, spellcheck: "false",
        pattern: `\\s*${FORM}\\s*`, title: "Letters, digits and - . _ ~ + / =",
    });
    const form = element(
        "form",
        {},
        element("h2", { id: "token-title" }, refused ? "The token was refused" : "A token is required"),
        element("p", {}, `The server says: ${detail}.`),
        element("label", { for: "token" }, "Token"),
        input,
        element("p", { class: "hint" }, "The token is kept in this tab until you close it."),
        element("div", { class: "buttons" },
            element("button", { type: "submit", class: "primary" }, "Use it"),
            element("button", { type: "button", click: () => dialog.close() }, "Cancel")),
    );
    const dialog = element("dialog", { "aria-labelledby": "token-title" }, form);
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => {
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            keepToken(input.value);
            dialog.close("given");
        });
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "given");
        });
    });
}
