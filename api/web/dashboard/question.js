/* Two fields made into one question for POST /kl_div: bins side by side, counts divided by their sums. */
import { count, isolate, plural } from "./format.js";
import { parse } from "./parse.js";
import { Unreadable } from "./tables.js";

/**
 * Side: the reference is `input` of the API, the current data are its `target`.
 *
 * @typedef {import("./tables.js").Space} Space
 * @typedef {import("./tables.js").Table} Table
 * @typedef {"reference" | "current"} Side
 * @typedef {Side | "pseudocount"} Field
 * @typedef {{
 *     reference: string, current: string, referenceSpace: Space, currentSpace: Space,
 *     base: "e" | "2", pseudocount: string
 * }} Input
 * @typedef {{
 *     labels: string[], reference: number[][], current: number[][],
 *     referenceSpace: string, currentSpace: string, base: "e" | "2"
 * }} Question
 */

/** A fault of one field. */
export class Problem extends Error {
    /**
     * @param {Field} field
     * @param {string} message
     */
    constructor(field, message) {
        super(message);
        this.field = field;
    }
}

/** @type {Side[]} */
export const SIDES = ["reference", "current"];

/**
 * Reads a field; null if it is empty. Of a text with both tables it takes its own.
 *
 * @param {Side} side
 * @param {string} text
 */
export function tableOf(side, text) {
    try {
        const found = parse(text);
        return found && "rows" in found ? found : found && found[side];
    } catch (error) {
        throw error instanceof Unreadable ? new Problem(side, sentence(error.message)) : error;
    }
}

/** @param {string} text */
function sentence(text) {
    return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

/**
 * Says how a field was read.
 *
 * @param {Table} table
 * @param {Space} space
 */
export function summary({ rows, labels }, space) {
    const size = plural(rows[0].length, "bin");
    const sum = rows[0].reduce((total, value) => total + value, 0);
    const of = rows.length > 1 ? `${count(rows.length)} rows of ${size}` : size;
    const total = rows.length === 1 && (space === "count" || space === "prob")
        ? `, sum ${Number(sum.toPrecision(9))}` : "";
    return `${of}${labels ? " with labels" : ""}${total}.`;
}

/**
 * Makes the question of two tables. Throws Problem.
 *
 * @param {Input} input
 * @param {Record<Side, Table>} tables
 * @returns {Question}
 */
export function question(input, tables) {
    const spaces = { reference: input.referenceSpace, current: input.currentSpace };
    const { labels, reference, current } = align(tables, spaces);
    const n = Math.max(reference.length, current.length);
    const pseudocount = pseudocountOf(input);
    const pairs = Array.from({ length: n }, (_, i) => divide(
        { reference: reference[i] ?? reference[0], current: current[i] ?? current[0] },
        spaces, pseudocount, labels));
    return {
        labels, base: input.base,
        reference: pairs.map((pair) => pair.reference),
        current: pairs.map((pair) => pair.current),
        referenceSpace: apiSpace(spaces.reference), currentSpace: apiSpace(spaces.current),
    };
}

/** @param {Space} space */
function apiSpace(space) {
    return space === "count" ? "prob" : space;
}

/** @param {Input} input */
export function hasCounts({ referenceSpace, currentSpace }) {
    return referenceSpace === "count" || currentSpace === "count";
}

/** @param {Input} input */
function pseudocountOf(input) {
    const text = input.pseudocount.trim().replace(",", ".");
    const value = text === "" ? 0 : Number(text);
    if (!hasCounts(input))
        return 0;
    if (!(value >= 0 && value < Infinity))
        throw new Problem("pseudocount", "A pseudocount is a number, 0 or more.");
    return value;
}

/**
 * Brings both tables to the same bins: by label where both have labels, else by place.
 *
 * @param {Record<Side, Table>} tables
 * @param {Record<Side, Space>} spaces
 */
function align(tables, spaces) {
    const { reference, current } = tables;
    checkSizes(tables);
    if (!reference.labels || !current.labels)
        return {
            labels: reference.labels ?? current.labels ?? current.rows[0].map((_, i) => `#${i + 1}`),
            reference: reference.rows, current: current.rows,
        };
    const labels = [...new Set([...reference.labels, ...current.labels])];
    return { labels, reference: place(reference, labels, spaces.reference),
             current: place(current, labels, spaces.current) };
}

/** @param {Record<Side, Table>} tables */
function checkSizes({ reference, current }) {
    const [sizes, rows] = [[reference, current].map((table) => table.rows[0].length),
                           [reference, current].map((table) => table.rows.length)];
    if (sizes[0] !== sizes[1] && !(reference.labels && current.labels))
        throw new Problem("current", `${plural(sizes[1], "bin")} here, and ${count(sizes[0])} in the ` +
            "reference: both need the same bins. With a label before each number, bins are matched by label.");
    if (rows[0] !== rows[1] && Math.min(...rows) > 1)
        throw new Problem("current", `${plural(rows[1], "row")} here, and ${count(rows[0])} in the ` +
            "reference: both need as many, or one of them a single row.");
}

/**
 * Rows in the order of all labels; a label that is not there has nothing.
 *
 * @param {Table} table
 * @param {string[]} labels
 * @param {Space} space
 */
function place({ rows, labels: own }, labels, space) {
    const nothing = space === "count" || space === "prob" ? 0 : -Infinity;
    const places = new Map(own?.map((label, i) => [label, i]));
    return rows.map((row) => labels.map((label) => row[places.get(label) ?? -1] ?? nothing));
}

/**
 * Divides counts by their sum: (c + a) / (n + aB). B bins have anything on either side; only they are
 * smoothed, as in monitors.
 *
 * @param {Record<Side, number[]>} pair
 * @param {Record<Side, Space>} spaces
 * @param {number} pseudocount
 * @param {string[]} labels
 */
function divide(pair, spaces, pseudocount, labels) {
    const none = (/** @type {Side} */ side, /** @type {number} */ i) =>
        spaces[side] === "count" || spaces[side] === "prob"
            ? pair[side][i] === 0 : pair[side][i] === -Infinity;
    const used = labels.map((_, i) => !(none("reference", i) && none("current", i)));
    const size = used.filter(Boolean).length;
    const fractions = (/** @type {Side} */ side) => {
        if (spaces[side] !== "count")
            return pair[side];
        const total = sumOf(side, pair[side], labels) + pseudocount * size;
        if (!(total > 0 && total < Infinity))
            throw new Problem(side, total > 0 ? "The counts are too large to be summed."
                : "All counts are 0: there is nothing to divide by.");
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
        throw new Problem(side, `Bin ${isolate(labels[wrong])} holds ${counts[wrong]}, and a count is a ` +
            `number, 0 or more.${counts[wrong] < 0 ? " Are they log-probabilities or logits?" : ""}`);
    return counts.reduce((total, value) => total + value, 0);
}
