/* Tables from text as people paste it: numbers with any separators, labels, CSV, arrays, JSON. */
import { fromJson } from "./json.js";
import { checkTable, pairOf, readNumber, Unreadable } from "./tables.js";

/**
 * @typedef {import("./tables.js").Table} Table
 * @typedef {import("./tables.js").Pair} Pair
 * @typedef {(text: string) => number | null} Read
 */

/** Text around the numbers of an array, in Python. */
const WRAPPER = /^[\w.]*\(|(,\s*\w+=[\w.'":]+)*\)$/g;

/**
 * Reads a text; null if there is nothing in it. Throws Unreadable.
 *
 * @param {string} text
 * @returns {Table | Pair | null}
 */
export function parse(text) {
    const tidy = text.replaceAll("\u2212", "-").trim();
    if (tidy === "")
        return null;
    const found = fromJson(tidy) ?? fromArray(tidy.replace(WRAPPER, "")) ?? fromLines(tidy);
    for (const table of "rows" in found ? [found] : [found.reference, found.current])
        checkTable(table);
    return found;
}

/** Rows of an array end at brackets, and not at lines, which NumPy breaks. @param {string} text */
function fromArray(text) {
    if (!/^\[.*\]$/s.test(text))
        return null;
    const rows = text.split("]").map((row) => row.replace(/\s+/g, " ").replace(/^[\s,[]+/, ""));
    const found = fromNumbers(rows.filter(Boolean), readNumber);
    if (!found)
        throw new Unreadable("there is more than numbers in this array");
    return found;
}

/**
 * Tells whether commas are decimal: beside other separators, or in numbers that all begin with 0.
 * Elsewhere "1,5" may be two numbers, and is taken as them.
 *
 * @param {string} text
 */
function hasDecimalCommas(text) {
    return !/\d\.\d|, /.test(text) && /\d,\d/.test(text) &&
        (/[;\t]/.test(text) || /^([-+]?0,\d+\s+|\d+\s+)+([-+]?0,\d+|\d+)$/.test(text));
}

/**
 * Lines of numbers, or of labels with numbers; "a: 12, b: 30" is one line for each. The last line
 * that pandas prints of a series is left out.
 *
 * @param {string} text
 */
function fromLines(text) {
    const decimal = hasDecimalCommas(text);
    /** @type {Read} */
    const read = (word) =>
        readNumber((decimal ? word.replace(",", ".") : word).replace(/^"(.*)"$/, "$1"));
    const lines = (/^(\s*[^\d\s,;]+[\s:=]+[\d.]+\s*([,;]|$)){2,}$/.test(text) ? text.split(/[,;]/)
        : text.split(/[\r\n]+/)).filter((line) => line.trim() && !/\bdtype: \w+$/.test(line));
    const found = fromNumbers(lines, read, decimal ? /[\s;]+/ : undefined) ?? fromGrid(lines, read);
    if (found)
        return found;
    const words = lines.map((line) => line.trim().split(/[\s,;]+/));
    const wrong = [...words.slice(1).map((row) => row[row.length - 1]), ...words.flat()]
        .find((word) => read(word) === null);
    throw new Unreadable(wrong === undefined ? "lines differ in their number of fields"
        : `“${wrong.slice(0, 40)}” is not a number`);
}

/**
 * Rows of numbers and nothing else; a column is one row. Null if there is anything else.
 *
 * @param {string[]} lines
 * @param {Read} read
 */
function fromNumbers(lines, read, separator = /[\s,;]+/) {
    const rows = lines.map((line) => line.split(separator).filter(Boolean).map(read));
    if (!rows.every(isNumbers))
        return null;
    if (lines.some((line) => /(^|[,;\t]) *[,;\t]/.test(line)))
        throw new Unreadable("a field is empty");
    const column = rows.length > 1 && rows.every((row) => row.length === 1);
    return { rows: column ? [rows.flat()] : rows, labels: null };
}

/** @type {(row: (number | null)[]) => row is number[]} */
const isNumbers = (row) => row.every((value) => value !== null);

/**
 * Fields of a line; those in quotes may hold the separator.
 *
 * @param {string} line
 * @param {string} separator
 */
function split(line, separator) {
    const field = new RegExp(`(?:^|${separator}) *(?:"((?:[^"]|"")*)" *|([^${separator}]*))`, "g");
    return [...line.matchAll(field)]
        .map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare.trim());
}

/**
 * Fields between blanks, which labels may hold, too: but for a header that tells otherwise, the
 * last word is the number, and the label what is before it. A line with more numbers is neither.
 *
 * @param {string[]} lines
 * @param {Read} read
 */
function splitWords(lines, read) {
    const words = lines.map((line) => line.trim().split(/[\s:=]+/));
    if (pairOf(words[0]))
        return words;
    const max = lines.length > 1 ? 2 : 1;
    if (words.some((row) => row.filter((word) => read(word) !== null).length > max))
        return [];
    const labelled = /^\s*"?(.*?)"?[\s:=]+(\S+)\s*$/;
    return lines.map((line) => (labelled.exec(line) ?? [line, line]).slice(1));
}

/**
 * Labels and columns of numbers, with or without a header, by the first separator that fits.
 *
 * @param {string[]} lines
 * @param {Read} read
 */
function fromGrid(lines, read) {
    for (const separator of ["\t", ";", ","]) {
        const found = lines.every((line) => line.includes(separator)) &&
            fromFields(lines.map((line) => split(line, separator)), read);
        if (found)
            return found;
    }
    return fromFields(splitWords(lines, read), read);
}

/**
 * A header names the columns of bins, or says which column is what. Without one the first is the
 * label, the second the number, and of three the third that of the current data.
 *
 * @param {string[][]} grid
 * @param {Read} read
 * @returns {Table | Pair | null}
 */
function fromFields(grid, read) {
    const headed = grid.length > 1 && grid[0].every((field) => read(field) === null);
    const head = headed ? grid[0] : [];
    const body = headed ? grid.slice(1) : grid;
    const width = body[0]?.length ?? 0;
    if (grid.some((fields) => fields.length !== width))
        return null;
    const numbers = body.map((fields) => fields.map(read));
    const named = pairOf(head);
    if (headed && !named && numbers.every(isNumbers) && (width !== 2 || body.length === 1))
        return width > 1 ? { rows: numbers, labels: head }
            : { rows: [numbers.flat()], labels: null };
    const pair = named ?? (width === 3 ? { reference: 1, current: 2 } : null);
    if (!pair && width !== 2)
        return null;
    const at = body[0].findIndex((_, i) => i !== pair?.reference && i !== pair?.current);
    const labels = at < 0 ? null : body.map((fields) => fields[at]);
    const [first, second] = [pair?.reference ?? 1, pair?.current ?? 1]
        .map((column) => numbers.map((row) => row[column]));
    if (!isNumbers(first) || !isNumbers(second))
        return null;
    return pair ? { reference: { rows: [first], labels }, current: { rows: [second], labels } }
        : { rows: [first], labels };
}
