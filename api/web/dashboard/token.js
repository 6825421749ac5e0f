/* The bearer token: asked for once, kept until the tab is closed. */
import { element } from "./dom.js";

const KEY = "kldiv.token";

export function token() {
    return sessionStorage.getItem(KEY);
}

/** @param {string} value */
export function keepToken(value) {
    sessionStorage.setItem(KEY, value.trim());
}

export function forgetToken() {
    sessionStorage.removeItem(KEY);
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
    });
    const form = element(
        "form",
        {},
        element("h2", { id: "token-title" }, refused ? "Another token, please" : "A token, please"),
        element("p", {}, `The server says: ${detail}.`),
        element("label", { for: "token" }, "Token"),
        input,
        element("p", { class: "hint" }, "It is kept in this tab until you close it."),
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
