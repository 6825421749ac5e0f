/* Bins of the calculator's result, in the form of the dashboard: what each contributes to KL. */

/**
 * @typedef {import("./types.js").Bin} Bin
 * @typedef {import("./divergences.js").Divergences} Divergences
 */

/** Maximum number of bins that are shown. */
const MAX_BINS = 1000;

/**
 * Bins of one row. The loss p ln(p/q) of a bin may be negative; with q - p more it never is, and
 * the sum stays the same where both rows sum to 1. Null is infinite, in a share also unknown.
 *
 * @param {Divergences} divergences
 * @param {number} row
 * @param {string[]} labels
 * @param {number} nat the unit's size: 1, or bits in a nat
 * @returns {Bin[]}
 */
export function binsOf(divergences, row, labels, nat) {
    const [reference, current] = [divergences.reference[row], divergences.current[row]];
    const sizes = divergences.bins[row].map((loss, i) =>
        (reference[i] === current[i] ? 0 : Math.max(loss + (reference[i] - current[i]) * nat, 0)));
    const sum = sizes.reduce((total, size) => total + size, 0);
    return labels.map((name, i) => ({
        name, kind: "label", lower: null, upper: null, reference: reference[i], current: current[i],
        contribution: sizes[i] === Infinity ? null : sizes[i],
        share: Number.isFinite(sum) ? sizes[i] / (sum || 1) : null,
    }));
}

/**
 * Bins to show, in their order: of very many those that contribute most.
 *
 * @param {Bin[]} bins
 */
export function shown(bins) {
    const size = (/** @type {Bin} */ bin) => bin.contribution ?? Infinity;
    const kept = new Set([...bins].sort((a, b) => size(b) - size(a)).slice(0, MAX_BINS));
    return bins.filter((bin) => kept.has(bin));
}
