/* Tables from text as people paste it: numbers with any separators, labels, CSV, arrays, JSON. */
import { fromJson } from "./json.js";
import { checkRows, pairOf, readNumber, Unreadable } from "./tables.js";

/**
 * @typedef {import("./tables.js").Table} Table
 * @typedef {import("./tables.js").Pair} Pair
 */

/** What pandas prints below a series. */
const FOOTER = /^(Name: .*|Length: .*)?dtype: \w+$/;

/** Fields that a name and a row of bins have at least; with fewer it is a label with its numbers. */
const NAMED_ROW = 4;

/** What stands around the numbers of an array, in Python. */
const WRAPPER = /\b(?:np\.|torch\.)?(?:array|tensor)\(|,\s*(?:dtype|device)=[\w.'":]+|\)/g;

/**
 * Reads a text; null if there is nothing in it. Throws Unreadable.
 *
 * @param {string} text
 * @returns {Table | Pair | null}
 */
export function parse(text) {
    const tidy = text.replace(/^\ufeff/, "").replaceAll("\u2212", "-").trim();
    if (tidy === "")
        return null;
    const found = fromJson(tidy) ?? fromArray(tidy) ?? fromLines(tidy);
    for (const table of "rows" in found ? [found] : [found.reference, found.current])
        checkRows(table);
    return found;
}

/** Rows of an array as NumPy or PyTorch print it: they end at brackets, not at lines. @param {string} text */
function fromArray(text) {
    const bare = text.replace(WRAPPER, "").trim();
    if (!/^\[.*\]$/s.test(bare))
        return null;
    const rows = bare.split("]").map((part) => part.replace(/\s+/g, " ").replace(/^[\s,[]+/, ""));
    return fromNumbers(rows.filter(Boolean), false);
}

/**
 * Tells whether a comma is a decimal one: beside other separators, or in numbers that all begin with
 * 0. Elsewhere "1,5" may be two numbers, and is taken as them.
 *
 * @param {string} text
 */
function hasDecimalCommas(text) {
    if (/\d\.\d|, /.test(text) || !/\d,\d/.test(text))
        return false;
    const words = text.split(/\s+/);
    return /[;\t]/.test(text) ||
        (words.length > 1 && words.every((word) => /^[-+]?(0,\d+|\d+)$/.test(word)));
}

/** @param {string} text */
function fromLines(text) {
    const decimal = hasDecimalCommas(text);
    const lines = text.split(/\r\n|\n|\r/).filter((line) => line.trim() && !FOOTER.test(line.trim()));
    if (lines.length === 0)
        throw new Unreadable("there is no number here");
    return fromNumbers(lines, decimal) ?? fromOneLine(lines, decimal) ??
        fromGrid(lines, decimal) ?? explain(lines, decimal);
}

/**
 * @param {string} text
 * @param {boolean} decimal
 */
function number(text, decimal) {
    const bare = text.trim().replace(/^"(.*)"$/, "$1");
    return readNumber(decimal ? bare.replace(",", ".") : bare);
}

/**
 * Splits what holds numbers alone.
 *
 * @param {string} line
 * @param {boolean} decimal
 */
function words(line, decimal) {
    return line.split(decimal ? /[\s;]+/ : /[\s,;]+/).filter(Boolean);
}

/**
 * Rows of numbers and nothing else; a column is one row. Null if there is anything else.
 *
 * @param {string[]} lines
 * @param {boolean} decimal
 */
function fromNumbers(lines, decimal) {
    const rows = lines.map((line) => words(line, decimal).map((word) => number(word, decimal)));
    if (!rows.every(isNumbers))
        return null;
    const empty = lines.findIndex((line) => /(^|[,;\t]) *[,;\t]/.test(line));
    if (empty >= 0)
        throw new Unreadable(`line ${empty + 1} has an empty field`);
    const column = rows.length > 1 && rows.every((row) => row.length === 1);
    return { rows: column ? [rows.flat()] : rows, labels: null };
}

/** @type {(row: (number | null)[]) => row is number[]} */
const isNumbers = (row) => row.every((value) => value !== null);

/**
 * Fields of a line of CSV; those in quotes may hold the separator. Separated by blanks, the last word
 * is the number, and what is before it the label.
 *
 * @param {string} line
 * @param {string} separator
 */
function split(line, separator) {
    if (separator === " ") {
        const parts = /^(.*?)[\s:=]+(\S+)$/.exec(line.trim());
        return parts ? [unquote(parts[1]), parts[2]] : [unquote(line)];
    }
    const field = separator === "\t" ? /("(?:[^"]|"")*"|[^\t]*)(\t|$)/y : separator === ";"
        ? /\s*("(?:[^"]|"")*"|[^;]*)\s*(;|$)/y : /\s*("(?:[^"]|"")*"|[^,]*)\s*(,|$)/y;
    const fields = [];
    for (let match = field.exec(line); match; match = match[2] ? field.exec(line) : null)
        fields.push(unquote(match[1]));
    return fields;
}

/** @param {string} text */
function unquote(text) {
    const bare = text.trim();
    return /^".*"$/s.test(bare) ? bare.slice(1, -1).replaceAll('""', '"') : bare;
}

/**
 * Labels and columns of numbers, with or without a header, by the first separator that fits.
 *
 * @param {string[]} lines
 * @param {boolean} decimal
 */
function fromGrid(lines, decimal) {
    for (const separator of ["\t", ";", ","]) {
        const found = lines.every((line) => line.includes(separator)) &&
            fromFields(lines.map((line) => split(line, separator)), decimal);
        if (found)
            return found;
    }
    return fromWords(lines, decimal);
}

/**
 * The same, separated by blanks, which labels may hold, too: the last word alone is taken as a number
 * unless a header or the number of words tells otherwise.
 *
 * @param {string[]} lines
 * @param {boolean} decimal
 */
function fromWords(lines, decimal) {
    const grid = lines.map((line) => line.trim().split(/\s+/));
    const found = (pairOf(grid[0]) || grid[0].length >= NAMED_ROW) && fromFields(grid, decimal);
    const mixed = grid.some((row) => row.length > 2 && row.every((word) => number(word, decimal) !== null));
    const crowded = grid.length === 1 && grid[0].slice(0, -1).some((word) => number(word, decimal) !== null);
    return found || (mixed || crowded ? null : fromFields(lines.map((line) => split(line, " ")), decimal));
}

/**
 * @param {string[][]} grid
 * @param {boolean} decimal
 * @returns {Table | Pair | null}
 */
function fromFields(grid, decimal) {
    const value = (/** @type {string} */ text) => number(text, decimal);
    const headed = grid.length > 1 && grid[0].every((field) => value(field) === null);
    const head = headed ? grid[0] : null;
    const body = head ? grid.slice(1) : grid;
    const width = body[0].length;
    if (!body.every((fields) => fields.length === width))
        return null;
    const numbers = body.map((fields) => fields.map(value));
    const pair = head && head.length === width ? pairOf(head) : null;
    if (pair)
        return fromColumns(body, numbers, pair);
    if (head && head.length === width && width !== 2 && numbers.every(isNumbers))
        return width === 1 ? { rows: [numbers.flat()], labels: null } : { rows: numbers, labels: head };
    if (head && width === 2 && body.length === 1 && isNumbers(numbers[0]))
        return { rows: [numbers[0]], labels: head };
    if (width >= NAMED_ROW && numbers.every((row) => row[0] === null && isNumbers(row.slice(1))))
        return { rows: numbers.map((row) => /** @type {number[]} */ (row.slice(1))),
                 labels: head && head.length === width ? head.slice(1) : null };
    if (width === 3)
        return fromColumns(body, numbers, { reference: 1, current: 2 });
    const counts = numbers.map((row) => row[1]);
    return width === 2 && isNumbers(counts)
        ? { rows: [counts], labels: body.map((fields) => fields[0]) } : null;
}

/**
 * Two columns of numbers; the first of the others has the labels.
 *
 * @param {string[][]} body
 * @param {(number | null)[][]} numbers
 * @param {{ reference: number, current: number }} pair
 * @returns {Pair | null}
 */
function fromColumns(body, numbers, pair) {
    const at = body[0].findIndex((_, i) => i !== pair.reference && i !== pair.current);
    const labels = at < 0 ? null : body.map((fields) => fields[at]);
    const column = (/** @type {number} */ i) => numbers.map((row) => row[i]);
    const [reference, current] = [column(pair.reference), column(pair.current)];
    return isNumbers(reference) && isNumbers(current)
        ? { reference: { rows: [reference], labels }, current: { rows: [current], labels } } : null;
}

/**
 * Labels and numbers in one line: "a: 12, b: 30", "a=12 b=30".
 *
 * @param {string[]} lines
 * @param {boolean} decimal
 */
function fromOneLine(lines, decimal) {
    if (lines.length > 1)
        return null;
    const [line] = lines;
    const parts = line.trim().split(/[,;]/.test(line) ? (decimal ? ";" : /[,;]/)
        : /\s+(?=[^\s:=]+\s*[:=])/);
    const named = parts.filter(Boolean).map((part) => split(part, " "));
    const row = named.map((part) => number(part[1] ?? "", decimal));
    const plain = named.every(([label]) => number(label, decimal) === null);
    return named.length > 1 && plain && isNumbers(row)
        ? { rows: [row], labels: named.map(([label]) => label) } : null;
}

/**
 * Says which word is no number.
 *
 * @param {string[]} lines
 * @param {boolean} decimal
 * @returns {never}
 */
function explain(lines, decimal) {
    const wrong = (/** @type {string} */ line) =>
        words(line, decimal).filter((word) => number(word, decimal) === null);
    const last = (/** @type {string} */ line) => number(words(line, decimal).at(-1) ?? "", decimal);
    const labelled = lines.findIndex((line, i) => i > 0 && last(line) === null);
    const at = labelled > 0 ? labelled : lines.findIndex((line) => wrong(line).length > 0);
    throw new Unreadable(at < 0 || (lines.length > 1 && labelled < 0 && at === 0)
        ? "lines differ in how many fields they have"
        : `line ${at + 1}: “${wrong(lines[at])[0].slice(0, 40)}” is not a number`);
}
