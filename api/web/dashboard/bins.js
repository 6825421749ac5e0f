/* Bins of a row as a table: what each adds to KL. */
import { element, fill } from "./dom.js";
import { number, percent, plural } from "./format.js";

/**
 * Bin of the dashboard, whose contribution is null where it is infinite.
 *
 * @typedef {import("./types.js").Bin} Bin
 * @typedef {import("./answers.js").Answer} Answer
 */

/** Bins that the chart and the table show at most. */
export const MOST = 1000;

/** Rows that the table shows at first. */
const FEW = 20;

/**
 * Bins of one row. The loss p ln(p/q) of a bin may be negative; with q - p more it never is, and the
 * sum stays the same where both rows sum to 1.
 *
 * @param {Answer} answer
 * @param {number} row
 * @param {string[]} labels
 * @param {number} nat the unit's size: 1, or bits in a nat
 * @returns {Bin[]}
 */
export function binsOf(answer, row, labels, nat) {
    const [reference, current] = [answer.fractions.reference[row], answer.fractions.current[row]];
    const sizes = answer.bins[row].map((loss, i) =>
        (reference[i] === current[i] ? 0 : Math.max(loss + (reference[i] - current[i]) * nat, 0)));
    const sum = sizes.reduce((total, size) => total + size, 0);
    return labels.map((name, i) => ({
        name, kind: "label", lower: null, upper: null, reference: reference[i], current: current[i],
        contribution: sizes[i] === Infinity ? null : sizes[i],
        share: sum === Infinity || sizes[i] === Infinity ? null : sum > 0 ? sizes[i] / sum : 0,
    }));
}

/** @param {Bin} bin */
function size(bin) {
    return bin.contribution ?? Infinity;
}

/**
 * The bins that are shown, in their order: of very many those that contribute most.
 *
 * @param {Bin[]} bins
 */
export function shown(bins) {
    if (bins.length <= MOST)
        return bins;
    const kept = new Set([...bins].sort((a, b) => size(b) - size(a)).slice(0, MOST));
    return bins.filter((bin) => kept.has(bin));
}

/** @param {Bin} bin */
function row(bin) {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--value", `${100 * (bin.contribution === null ? 1 : bin.share ?? 0)}%`);
    return element("tr", {},
        element("th", { scope: "row", title: bin.name }, element("bdi", {}, bin.name)),
        element("td", { title: bin.reference }, digits(bin.reference)),
        element("td", { title: bin.current }, digits(bin.current)),
        element("td", { title: bin.contribution ?? "infinite" },
            Number.isNaN(bin.contribution) ? "–" : number(bin.contribution)),
        element("td", {}, bar, " ", bin.share === null || Number.isNaN(bin.contribution) ? "–" : percent(bin.share)));
}

/** @param {number} value */
export function digits(value) {
    return Number.isFinite(value) ? String(Number(value.toPrecision(6)))
        : Number.isNaN(value) ? "not a number" : value < 0 ? "−∞" : "∞";
}

/**
 * @param {Bin[]} bins
 * @param {string} unit
 */
export function binTable(bins, unit) {
    const orders = { size: [...bins].sort((a, b) => size(b) - size(a)), place: bins };
    let order = /** @type {"size" | "place"} */ ("size");
    let n = FEW;
    const body = element("tbody");
    const all = element("button", { type: "button", click: () => show(order, bins.length) },
        `All ${plural(bins.length, "bin")}`);
    const buttons = [["size", "Greatest first"], ["place", "In order"]].map(([name, text]) =>
        element("button", { type: "button", value: name, click: () =>
            show(/** @type {"size" | "place"} */ (name), n) }, text));
    const show = (/** @type {"size" | "place"} */ by, /** @type {number} */ most) => {
        [order, n] = [by, most];
        fill(body, ...orders[order].slice(0, n).map(row));
        buttons.forEach((each) => each.setAttribute("aria-pressed", String(each.value === order)));
        all.hidden = n >= bins.length;
    };
    show(order, n);
    return [
        element("div", { class: "buttons", role: "group", "aria-label": "Order of bins" }, ...buttons),
        element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Bins" },
            element("table", {}, head(unit), body)),
        element("div", { class: "buttons" }, all),
    ];
}

/** @param {string} unit */
function head(unit) {
    const columns = [
        ["Bin", "Its label, or its place"],
        ["Reference q", "Probability of the bin in the reference, smoothed if there is a pseudocount"],
        ["Current p", "Probability of the bin in the current data, smoothed alike"],
        ["Contribution", `p log(p/q) − p + q in ${unit}: never negative, and sums to KL where both sum to 1`],
        ["Share", "Contribution, of all contributions"],
    ];
    return element("thead", {}, element("tr", {}, ...columns.map(([name, title]) =>
        element("th", { scope: "col", title }, name))));
}
