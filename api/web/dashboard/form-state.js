/* The state of the calculator's form: kept across reloads, and in the link if it is short. */

/** @typedef {import("./loss-request.js").Input} Input */

const KEY = "kldiv.calculator";

/** Maximum length of a fragment that chat and mail programs accept. */
const SHORT = 1800;

/** @type {Input} */
export const EXAMPLE = {
    reference: "0–20\t120\n20–40\t310\n40–60\t270\n60–80\t190\n80+\t110",
    current: "0–20\t14\n20–40\t25\n40–60\t30\n60–80\t29\n80+\t42",
    referenceSpace: "count", currentSpace: "count", base: "e", pseudocount: "0",
};

/** @param {string | null} text @returns {Partial<Input> | null} */
function read(text) {
    const known = [...new URLSearchParams(text ?? "")].filter(([name]) => Object.hasOwn(EXAMPLE, name));
    return known.length > 0 ? Object.fromEntries(known) : null;
}

/**
 * Loads the state from the link, else the one kept in this tab, else an example.
 *
 * @returns {Partial<Input>}
 */
export function load() {
    let kept = null;
    try {
        kept = sessionStorage.getItem(KEY);
    } catch { /* Storage may be refused to the page. */ }
    const known = read(location.hash.slice(1)) ?? read(kept);
    return { ...EXAMPLE, ...(known && { reference: "", current: "" }), ...known };
}

/**
 * Keeps the input. Returns whether the page's address now holds it.
 *
 * @param {Input} input
 */
export function save(input) {
    const text = String(new URLSearchParams(input));
    try {
        sessionStorage.setItem(KEY, text);
    } catch { /* It is full, or not allowed: only the link is left. */ }
    const short = text.length <= SHORT && text !== String(new URLSearchParams(EXAMPLE));
    history.replaceState(null, "", short ? `#${text}` : location.pathname);
    return short;
}
