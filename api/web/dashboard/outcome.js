/* What a call with a table comes to: its error, its warnings, the order of its results. */
import { ApiError } from "./api.js";
import { element, fill } from "./dom.js";

/** @typedef {{ code: string, message: string, column: string | null }} Warning */

/** By which results are sorted, the greatest first. @param {import("./types.js").Result} result */
export function rank(result) {
    return result.kl ?? (result.infinite ? Infinity : -1);
}

/** Columns whose values have no bins of their own; the first ones may have them if the reader wants. */
const MAY_BE_WATCHED = ["nearly_unique", "dates"];
const WITHOUT_BINS = [...MAY_BE_WATCHED, "labels_too_large"];

/** What the service says of a file that is not text. */
const BINARY = /there is a NUL at byte/;

/** What messages say of parameters, to programs: the page has buttons and fields for these. */
const PARAMETERS = /, unless \?include= names it| \(\?time= [^)]*\)| by \?bins= or \?include=/g;

/** An error of a file as the page tells it. @param {ApiError} error */
function errorText({ message }) {
    return BINARY.test(message) ? "This is no table: the file is binary, as images and archives are" : message.replace(PARAMETERS, "");
}

/** What is told of such a column that is ok. */
export const ONLY_MISSING = "only missing values are watched";

/** Columns of which only missing values are watched. @param {Warning[]} all @returns {Set<string | null>} */
export function presenceOf(all) {
    return new Set(all.filter(({ code }) => WITHOUT_BINS.includes(code)).map(({ column }) => column));
}

/**
 * @param {Warning[]} all
 * @param {(column: string) => void} [watch] called for a column that is to have a monitor
 */
export function warnings(all, watch) {
    return all.map(({ code, column, message }) => element("p", { class: "alert" },
        column && element("bdi", {}, element("b", {}, column)), column && ": ", message.replace(PARAMETERS, ""), " ",
        watch && column && MAY_BE_WATCHED.includes(code) && element("button", {
            type: "button", "aria-label": `Watch the values of ${column}`, click: () => watch(column) }, "Watch its values")));
}

/**
 * Makes a call, and shows its error if it fails.
 *
 * @template T
 * @param {HTMLElement} parent
 * @param {() => Promise<T>} make
 * @param {() => boolean} wanted false once something newer was asked
 */
export async function attempt(parent, make, wanted = () => true) {
    fill(parent, element("p", { class: "loading" }, "…"));
    try {
        const response = await make();
        return wanted() ? response : null;
    } catch (error) {
        if (!(error instanceof ApiError))
            throw error;
        if (wanted())
            fill(parent, element("p", { class: "failure", role: "alert" }, `${errorText(error)}.`));
        return null;
    }
}
