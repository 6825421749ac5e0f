/* Tables of numbers, and numbers as text. */

/**
 * Table: rows of numbers, one for each bin. Pair: both tables of a comparison that came as one text,
 * with what else the text said.
 *
 * @typedef {"count" | "prob" | "log_prob" | "logit"} Space
 * @typedef {{ rows: number[][], labels: string[] | null }} Table
 * @typedef {{
 *     reference: Table, current: Table, referenceSpace?: Space, currentSpace?: Space,
 *     base?: "e" | "2", leftOut?: string[]
 * }} Pair
 */

/** A text that is no table; the message says why. */
export class Unreadable extends Error {}

const REFERENCE = /^(reference|ref|input|q|expected|baseline)$/i;
const CURRENT = /^(current|cur|target|p|actual|observed)$/i;

/**
 * Places of the two columns that names tell; null where they do not.
 *
 * @param {string[]} names
 */
export function pairOf(names) {
    const reference = names.findIndex((name) => REFERENCE.test(name.trim()));
    const current = names.findIndex((name) => CURRENT.test(name.trim()));
    return reference < 0 || current < 0 ? null : { reference, current };
}

const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(%?)$/i;
const WORD = /^([-+]?)(inf(inity)?|nan)$/i;

/**
 * Reads a number; null if the text is none. Infinity and NaN are numbers here: the server says what
 * becomes of them.
 *
 * @param {string} text
 */
export function readNumber(text) {
    const word = WORD.exec(text);
    if (word)
        return /nan/i.test(text) ? NaN : word[1] === "-" ? -Infinity : Infinity;
    const decimal = DECIMAL.exec(text);
    if (!decimal)
        return null;
    const value = parseFloat(text);
    if (!Number.isFinite(value))
        throw new Unreadable(`${text} is too large`);
    return decimal[3] ? value / 100 : value;
}

/** @param {Table} table */
export function checkRows({ rows, labels }) {
    const size = rows[0].length;
    rows.forEach((row, i) => {
        if (row.length !== size)
            throw new Unreadable(`row ${i + 1} has ${row.length} numbers, and row 1 has ${size}`);
    });
    if (labels && new Set(labels).size < labels.length) {
        const twice = labels.find((label, i) => labels.indexOf(label) < i);
        throw new Unreadable(`the label “${twice}” is there twice`);
    }
}

/**
 * A table as the text that a field shows.
 *
 * @param {Table} table
 */
export function tableText({ rows, labels }) {
    if (labels && rows.length === 1)
        return labels.map((label, i) => `${quoted(label)}\t${rows[0][i]}`).join("\n");
    const head = labels ? [labels.map(quoted).join("\t")] : [];
    return [...head, ...rows.map((row) => row.join(labels ? "\t" : " "))].join("\n");
}

/** @param {string} label */
function quoted(label) {
    return /["\t\n]|^\s|\s$/.test(label) || label === "" ? `"${label.replaceAll('"', '""')}"` : label;
}
