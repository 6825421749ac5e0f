/* What stands in the calculator survives a reload, and a short one goes with the link. */

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

/** @type {Input} */
export const EMPTY = { ...EXAMPLE, reference: "", current: "" };

/** Values of the members that are choices. */
const CHOICES = /** @type {Record<string, string[]>} */ ({
    referenceSpace: ["count", "prob", "log_prob", "logit"],
    currentSpace: ["count", "prob", "log_prob", "logit"],
    base: ["e", "2"],
});

/** @param {string} text */
function read(text) {
    const query = new URLSearchParams(text);
    const known = Object.keys(EMPTY).filter((name) => {
        const value = query.get(name);
        return value !== null && (CHOICES[name]?.includes(value) ?? true);
    });
    return known.length === 0 ? null : /** @type {Input} */ (
        { ...EMPTY, ...Object.fromEntries(known.map((name) => [name, query.get(name)])) });
}

/** @param {Input} input */
function write(input) {
    return String(new URLSearchParams(input));
}

/** What the link says, else what stood here before, else an example. */
export function load() {
    let kept = null;
    try {
        kept = sessionStorage.getItem(KEY);
    } catch {
        /* Storage may be refused to the page. */
    }
    return read(location.hash.slice(1)) ?? read(kept ?? "") ?? EXAMPLE;
}

/**
 * Keeps the input; tells whether the page's address now holds it.
 *
 * @param {Input} input
 */
export function save(input) {
    const text = write(input);
    try {
        sessionStorage.setItem(KEY, text);
    } catch {
        /* It is full, or refused to the page: the link is what there is. */
    }
    const example = text === write(EXAMPLE);
    const short = !example && text.length <= SHORT;
    history.replaceState(null, "", short ? `#${text}` : location.pathname + location.search);
    return short;
}
