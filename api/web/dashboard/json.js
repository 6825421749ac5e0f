/* Tables from JSON: counts by label, bodies of /kl_div, windows of a monitor, arrays in them. */
import { pairOf, readNumber, Unreadable } from "./tables.js";

/**
 * @typedef {import("./tables.js").Table} Table
 * @typedef {import("./tables.js").Pair} Pair
 * @typedef {import("./tables.js").Space} Space
 * @typedef {{ [name: string]: unknown }} Members
 */

/** Members of a body of /kl_div that the calculator has fields for, or sets itself. */
const KNOWN = /^(input|target)(_space)?$|^(log_target|base|dim|reduction|compat|diagnose|dtype)$/;

/**
 * Reads objects and arrays of objects; null if the text is neither.
 *
 * @param {string} text
 * @returns {Table | Pair | null}
 */
export function fromJson(text) {
    if (!/^(\[\s*)?\{/.test(text))
        return null;
    try {
        /* Python writes NaN and infinities as bare words. */
        return tableOf(JSON.parse(text.replace(/([[:,]\s*)(-?(?:NaN|Infinity))\b/g, '$1"$2"')));
    } catch (error) {
        throw error instanceof SyntaxError
            ? new Unreadable("this begins like JSON, and is not well-formed") : error;
    }
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
    if (Array.isArray(value))
        return isObject(value[0]) ? ofRecords(value) : { rows: rowsOf(value), labels: null };
    if (!isObject(value))
        throw new Unreadable("there is no table in this JSON");
    const names = Object.keys(value);
    const pair = pairOf(names);
    if (pair)
        return {
            reference: /** @type {Table} */ (tableOf(value[names[pair.reference]])),
            current: /** @type {Table} */ (tableOf(value[names[pair.current]])),
            ...("input" in value ? bodyOf(value) : {}),
        };
    return Array.isArray(value["bins"]) ? tableOf(value["bins"])
        : { rows: [names.map((name) => numberOf(value[name]))], labels: names };
}

/** @param {unknown} value */
function numberOf(value) {
    const number = readNumber(String(value));
    if (number === null || (typeof value === "number" && !Number.isFinite(value)))
        throw new Unreadable(`${JSON.stringify(value)} is not a number`);
    return number;
}

/**
 * Rows of an array of any depth: its innermost arrays.
 *
 * @param {unknown[]} value
 * @returns {number[][]}
 */
function rowsOf(value) {
    return value.some(Array.isArray)
        ? value.flatMap((each) => rowsOf(/** @type {unknown[]} */ ([each].flat())))
        : [value.map(numberOf)];
}

/**
 * Records with the members reference and current, as a window's bins.
 *
 * @param {Members[]} records
 * @returns {Pair}
 */
function ofRecords(records) {
    const [labels] = ["name", "label", "bin"].filter((name) => name in records[0])
        .map((name) => records.map((each) => String(each[name])));
    const column = (/** @type {string} */ name) =>
        ({ rows: [records.map((each) => numberOf(each[name]))], labels: labels ?? null });
    const said = /** @type {const} */ ({ referenceSpace: "prob", currentSpace: "prob" });
    return { reference: column("reference"), current: column("current"),
             ...("contribution" in records[0] ? { said } : {}) };
}

/** Options that stand in a body of /kl_div, with the defaults of it. @param {Members} body */
function bodyOf(body) {
    const known = (/** @type {unknown} */ space, /** @type {Space} */ other) =>
        /** @type {Space[]} */ (["prob", "log_prob", "logit"]).find((each) => each === space) ?? other;
    return {
        said: {
            referenceSpace: known(body["input_space"], "log_prob"),
            currentSpace: known(body["target_space"], body["log_target"] ? "log_prob" : "prob"),
            base: /** @type {"e" | "2"} */ (String(body["base"]) === "2" ? "2" : "e"),
        },
        leftOut: Object.keys(body).filter((name) => !KNOWN.test(name)),
    };
}
