/* Tables of numbers: what stands in a field. */

/**
 * Table: rows of numbers, one for each bin. Pair: both tables of a comparison that came as one text,
 * with what else the text said.
 *
 * @typedef {"count" | "prob" | "log_prob" | "logit"} Space
 * @typedef {{ rows: number[][], labels: string[] | null }} Table
 * @typedef {{
 *     reference: Table, current: Table, leftOut?: string[],
 *     said?: { referenceSpace?: Space, currentSpace?: Space, base?: "e" | "2" }
 * }} Pair
 */

/** A field that cannot be used; the message says why, for people. */
export class Unreadable extends Error {
    /**
     * @param {string} message
     * @param {"reference" | "current" | "pseudocount"} [field] left out where the caller knows it
     */
    constructor(message, field) {
        super(message);
        this.field = field;
    }
}

/**
 * Places of the reference and the current data among names; null where names do not tell.
 *
 * @param {string[]} names
 */
export function pairOf(names) {
    const reference = names.findIndex((name) => /^(reference|input|q|expected)$/i.test(name));
    const current = names.findIndex((name) => /^(current|target|p|actual)$/i.test(name));
    return reference < 0 || current < 0 ? null : { reference, current };
}

/**
 * Reads a number; null if the text is none. Infinity and NaN are numbers here: the server says what
 * becomes of them.
 *
 * @param {string} text
 */
export function readNumber(text) {
    const word = /^([-+]?)(?:inf(?:inity)?|(nan))$/i.exec(text);
    if (word)
        return word[2] ? NaN : word[1] === "-" ? -Infinity : Infinity;
    if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?%?$/i.test(text))
        return null;
    const value = parseFloat(text);
    if (!Number.isFinite(value))
        throw new Unreadable(`${text} is too large`);
    return text.endsWith("%") ? value / 100 : value;
}

/** @param {Table} table */
export function checkTable({ rows, labels }) {
    if (!rows[0]?.length)
        throw new Unreadable("there is no number here");
    const other = rows.find((row) => row.length !== rows[0].length);
    if (other)
        throw new Unreadable(`one row has ${rows[0].length} numbers, and another ${other.length}`);
    const seen = new Set();
    for (const label of labels ?? []) {
        if (seen.has(label))
            throw new Unreadable(`the label “${label}” is there twice`);
        seen.add(label);
    }
}

/**
 * A table as a text that is read as the same table.
 *
 * @param {Table} table
 */
export function tableText({ rows, labels }) {
    const names = labels?.map((label) => label.replace(/\s+/g, " ").trim() || "–");
    if (names && rows.length === 1)
        return names.map((name, i) => `${name}\t${rows[0][i]}`).join("\n");
    return [...(names ? [names] : []), ...rows].map((row) => row.join("\t")).join("\n");
}
