/* Memory of the calculator: its fields survive a reload, and go with the link if they are short. */

/** @typedef {import("./question.js").Input} Input */

const KEY = "kldiv.calculator";

/** Characters of a fragment that chats and mails still take. */
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
 * Loads what the link says, else what stood here before, else an example.
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
 * Keeps the input; tells whether the page's address now holds it.
 *
 * @param {Input} input
 */
export function save(input) {
    const text = String(new URLSearchParams(input));
    try {
        sessionStorage.setItem(KEY, text);
    } catch { /* It is full, or refused: the link is what there is. */ }
    const short = text.length <= SHORT && text !== String(new URLSearchParams(EXAMPLE));
    history.replaceState(null, "", short ? `#${text}` : location.pathname);
    return short;
}
