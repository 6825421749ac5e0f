/* A request for POST /kl_div made of two tables: the same bins, counts divided by their sums. */
import { isolate, plural } from "./format.js";
import { Unreadable } from "./tables.js";

/**
 * Side: the reference is `input` of the API, the current data are its `target`.
 *
 * @typedef {import("./tables.js").Space} Space
 * @typedef {import("./tables.js").Table} Table
 * @typedef {"reference" | "current"} Side
 * @typedef {{
 *     reference: string, current: string, referenceSpace: Space, currentSpace: Space,
 *     base: "e" | "2", pseudocount: string
 * }} Input
 * @typedef {{
 *     labels: string[], reference: number[][], current: number[][],
 *     referenceSpace: Space, currentSpace: Space, base: "e" | "2"
 * }} LossRequest
 */

/**
 * Makes the request of two tables; a single row on one side is compared with each row of the other.
 * Throws Unreadable.
 *
 * @param {Input} input
 * @param {Record<Side, Table>} tables
 * @returns {LossRequest}
 */
export function lossRequest(input, tables) {
    const spaces = { reference: input.referenceSpace, current: input.currentSpace };
    const { labels, reference, current } = align(tables, spaces);
    const pseudocount = pseudocountOf(input);
    const longer = reference.length > 1 ? reference : current;
    const pairs = longer.map((_, i) => divide(
        { reference: reference[i] ?? reference[0], current: current[i] ?? current[0] },
        spaces, pseudocount, labels));
    const space = (/** @type {Side} */ side) => (spaces[side] === "count" ? "prob" : spaces[side]);
    return {
        labels, base: input.base,
        reference: pairs.map((pair) => pair.reference), referenceSpace: space("reference"),
        current: pairs.map((pair) => pair.current), currentSpace: space("current"),
    };
}

/** @param {Input} input */
export function hasCounts({ referenceSpace, currentSpace }) {
    return referenceSpace === "count" || currentSpace === "count";
}

/** @param {Input} input */
function pseudocountOf(input) {
    const value = hasCounts(input) ? Number(input.pseudocount.replace(",", ".")) : 0;
    if (!(value >= 0 && value < Infinity))
        throw new Unreadable("a pseudocount is a number, 0 or more", "pseudocount");
    return value;
}

/**
 * Brings both tables to the same bins: by label if both have labels, else by position.
 *
 * @param {Record<Side, Table>} tables
 * @param {Record<Side, Space>} spaces
 */
function align({ reference, current }, spaces) {
    const rows = [current.rows.length, reference.rows.length];
    if (rows[0] !== rows[1] && Math.min(...rows) > 1)
        differ(rows, "row", "as many, or one of them a single row");
    if (reference.labels && current.labels) {
        const labels = [...new Set([...reference.labels, ...current.labels])];
        return { labels, reference: reorder(reference, labels, spaces.reference),
                 current: reorder(current, labels, spaces.current) };
    }
    const bins = [current.rows[0].length, reference.rows[0].length];
    if (bins[0] !== bins[1])
        differ(bins, "bin", "the same; bins with labels on both sides are matched by label");
    const labels = reference.labels ?? current.labels ?? current.rows[0].map((_, i) => `#${i + 1}`);
    return { labels, reference: reference.rows, current: current.rows };
}

/**
 * @param {number[]} sizes
 * @param {string} noun
 * @param {string} need
 */
function differ([here, there], noun, need) {
    throw new Unreadable(`${plural(here, noun)} here, and ${plural(there, noun)} in the ` +
        `reference: both need ${need}`, "current");
}

/** The number that means probability 0. @param {Space} space */
function noMass(space) {
    return space === "count" || space === "prob" ? 0 : -Infinity;
}

/**
 * Rows in the order of all labels; a missing label has probability 0.
 *
 * @param {Table} table
 * @param {string[]} labels
 * @param {Space} space
 */
function reorder({ rows, labels: own }, labels, space) {
    const indices = new Map(own?.map((label, i) => [label, i]));
    return rows.map((row) => labels.map((label) => row[indices.get(label) ?? -1] ?? noMass(space)));
}

/**
 * Divides counts by their sum: (c + a) / (n + aB). B is the number of bins that are not empty on both sides;
 * only those are smoothed, as in monitors.
 *
 * @param {Record<Side, number[]>} pair
 * @param {Record<Side, Space>} spaces
 * @param {number} pseudocount
 * @param {string[]} labels
 */
function divide(pair, spaces, pseudocount, labels) {
    const has = (/** @type {Side} */ side, /** @type {number} */ i) =>
        pair[side][i] !== noMass(spaces[side]);
    const used = labels.map((_, i) => has("reference", i) || has("current", i));
    const size = used.filter(Boolean).length;
    const fractions = (/** @type {Side} */ side) => {
        if (spaces[side] !== "count")
            return pair[side];
        const total = sumOf(side, pair[side], labels) + pseudocount * size;
        if (!(total > 0 && total < Infinity))
            throw new Unreadable(total > 0 ? "the sum of the counts is too large"
                : "all counts are 0: there is nothing to divide by", side);
        return pair[side].map((value, i) => (used[i] ? (value + pseudocount) / total : 0));
    };
    return { reference: fractions("reference"), current: fractions("current") };
}

/**
 * @param {Side} side
 * @param {number[]} counts
 * @param {string[]} labels
 */
function sumOf(side, counts, labels) {
    const wrong = counts.findIndex((value) => !(value >= 0 && value < Infinity));
    if (wrong >= 0)
        throw new Unreadable(
            `bin ${isolate(labels[wrong])} holds ${counts[wrong]}, which is not a count`, side);
    return counts.reduce((total, value) => total + value, 0);
}
