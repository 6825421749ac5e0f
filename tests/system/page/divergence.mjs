// Oracle of the calculator: KL of two rows from its definition, and random rows to ask it about.
import {normal} from "./tables.mjs";

/** @typedef {"count" | "prob" | "log_prob" | "logit"} Space */

/** @type {Space[]} */
export const SPACES = ["count", "prob", "log_prob", "logit"];

/**
 * Logarithms of the probabilities that a row of a space stands for.
 * @param {number[]} row
 * @param {Space} space
 * @param {number} pseudocount
 * @param {boolean[]} used
 */
function logsOf(row, space, pseudocount, used) {
    if (space === "log_prob") return row;
    if (space === "prob") return row.map(Math.log);
    const sum = (/** @type {number[]} */ all) => all.reduce((a, b) => a + b, 0);
    const most = Math.max(...row);
    if (space === "logit")
        return row.map(each => each - most - Math.log(sum(row.map(x => Math.exp(x - most)))));
    const total = sum(row) + pseudocount * used.filter(Boolean).length;
    return row.map((each, i) => Math.log(used[i] ? (each + pseudocount) / total : 0));
}

/**
 * KL of two rows in nats.
 * @param {number[]} reference
 * @param {number[]} current
 * @param {{referenceSpace: Space, currentSpace: Space, pseudocount: number}} how
 */
export function divergence(reference, current, {referenceSpace, currentSpace, pseudocount}) {
    const has = (/** @type {Space} */ space, /** @type {number} */ value) =>
        space === "count" || space === "prob" ? value !== 0 : value !== -Infinity;
    const used = current.map((value, i) =>
        has(currentSpace, value) || has(referenceSpace, reference[i]));
    const q = logsOf(reference, referenceSpace, pseudocount, used);
    const p = logsOf(current, currentSpace, pseudocount, used);
    return p.reduce((sum, each, i) =>
        sum + (each === -Infinity ? 0 : Math.exp(each) * (each - q[i])), 0);
}

/**
 * Two histograms with a pseudocount, for the oracle.
 * @param {number} pseudocount
 */
export function counts(pseudocount) {
    return /** @type {const} */ ({referenceSpace: "count", currentSpace: "count", pseudocount});
}

/**
 * A row of random numbers of a space, with zeros here and there.
 * @param {() => number} random
 * @param {number} n
 * @param {Space} space
 */
export function randomRow(random, n, space) {
    const logits = Array.from({length: n}, () => 2 * normal(random));
    if (space === "logit") return logits;
    const row = logits.map(each => random() < 0.1 ? 0 : Math.ceil(100 * Math.exp(each)));
    row[0] ||= 1;
    if (space === "count") return row;
    const sum = row.reduce((a, b) => a + b, 0);
    return row.map(each => space === "prob" ? each / sum : Math.log(each / sum));
}
