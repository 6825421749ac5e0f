/* Tables from JSON: arrays, counts by label, bodies of /kl_div, bins of a monitor's window. */
import { pairOf, readNumber, Unreadable } from "./tables.js";

/**
 * @typedef {import("./tables.js").Table} Table
 * @typedef {import("./tables.js").Pair} Pair
 * @typedef {import("./tables.js").Space} Space
 * @typedef {{ [name: string]: unknown }} Members
 */

/** Members of a body of /kl_div that the calculator has fields for, or sets itself. */
const KNOWN = ["input", "target", "input_space", "target_space", "log_target", "base", "dim",
               "reduction", "compat", "diagnose", "dtype", "shape"];

/**
 * Reads a text that is JSON; null if it is not, and may be another form.
 *
 * @param {string} text
 * @returns {Table | Pair | null}
 */
export function fromJson(text) {
    if (!/^[[{]/.test(text))
        return null;
    const value = parsed(text);
    if (value === undefined && text.startsWith("{"))
        throw new Unreadable("this begins like JSON, and is not well-formed");
    return value === undefined ? null : tableOf(value);
}

/** Python writes NaN and infinities as bare words, which are put in quotes. @param {string} text */
function parsed(text) {
    const quoted = text.replace(/(^|[[{:,\s])(-?(?:NaN|Infinity))(?=[\s,\]}]|$)/g, '$1"$2"');
    for (const form of [text, quoted])
        try {
            return /** @type {unknown} */ (JSON.parse(form));
        } catch {
            /* The next form, if there is one, may do. */
        }
    return undefined;
}

/** @param {unknown} value @returns {value is Members} */
function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @returns {Table | Pair}
 */
function tableOf(value) {
    if (Array.isArray(value) && value.length > 0)
        return value.every(isObject) ? ofRecords(value) : { rows: rowsOf(value), labels: null };
    if (isObject(value)) {
        const names = Object.keys(value);
        const pair = pairOf(names);
        if (pair && typeof value[names[pair.reference]] === "object")
            return { ...both(value[names[pair.reference]], value[names[pair.current]]), ...said(value) };
        if (Array.isArray(value["bins"]))
            return tableOf(value["bins"]);
        if (names.length > 0)
            return { rows: [names.map((name) => numberOf(value[name]))], labels: names };
    }
    throw new Unreadable("there is no number in this JSON");
}

/**
 * @param {unknown} reference
 * @param {unknown} current
 */
function both(reference, current) {
    const tables = { reference: tableOf(reference), current: tableOf(current) };
    if (!("rows" in tables.reference && "rows" in tables.current))
        throw new Unreadable("there are more than two tables in this JSON");
    return { reference: tables.reference, current: tables.current };
}

/** @param {unknown} value */
function numberOf(value) {
    const number = typeof value === "number" ? value
        : typeof value === "string" ? readNumber(value.trim()) : null;
    if (number === null || (typeof value === "number" && !Number.isFinite(value)))
        throw new Unreadable(number === null ? `${JSON.stringify(value).slice(0, 40)} is not a number`
            : "a number of this JSON is too large");
    return number;
}

/**
 * Rows of an array of any depth: its innermost arrays.
 *
 * @param {unknown[]} value
 * @returns {number[][]}
 */
function rowsOf(value) {
    if (!value.some(Array.isArray))
        return [value.map(numberOf)];
    return value.flatMap((each) => {
        if (!Array.isArray(each) || each.length === 0)
            throw new Unreadable("a row of this JSON is empty, or no array");
        return rowsOf(each);
    });
}

/**
 * Records with a label and one number, or two.
 *
 * @param {Members[]} records
 * @returns {Table | Pair}
 */
function ofRecords(records) {
    const names = Object.keys(records[0]);
    const pair = pairOf(names);
    const label = names.find((name) => typeof records[0][name] === "string");
    const labels = label === undefined ? null : records.map((each) => String(each[label]));
    const column = (/** @type {string} */ name) =>
        ({ rows: [records.map((each) => numberOf(each[name]))], labels });
    if (pair)
        return { reference: column(names[pair.reference]), current: column(names[pair.current]),
                 ...(names.includes("contribution") ? spaces("prob", "prob") : {}) };
    const value = names.find((name) => name !== label);
    if (value === undefined)
        throw new Unreadable("there is no number in this JSON");
    return column(value);
}

/**
 * @param {Space} referenceSpace
 * @param {Space} currentSpace
 */
function spaces(referenceSpace, currentSpace) {
    return { referenceSpace, currentSpace };
}

/** Options that stand in a body of /kl_div, with the defaults of it. @param {Members} body */
function said(body) {
    if (!("input" in body && "target" in body))
        return {};
    const known = (/** @type {unknown} */ space) =>
        /** @type {Space | undefined} */ (["prob", "log_prob", "logit"].find((each) => each === space));
    return {
        ...spaces(known(body["input_space"]) ?? "log_prob", known(body["target_space"]) ??
            (body["log_target"] === true ? "log_prob" : "prob")),
        base: /** @type {"e" | "2"} */ (String(body["base"] ?? "e") === "2" ? "2" : "e"),
        leftOut: Object.keys(body).filter((name) => !KNOWN.includes(name)),
    };
}
