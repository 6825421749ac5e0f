/* The range of time that is looked at: in the address, and the same in each view; and periods that are entered. */
import { ApiError } from "./api.js";
import { openDialog } from "./dialog.js";
import { element } from "./dom.js";
import { time, zoneName } from "./format.js";
import { zone } from "./settings.js";

/**
 * @typedef {object} Range
 * @property {string} name
 * @property {number | null} from milliseconds; null for all that is listed
 * @property {number | null} to milliseconds; null for now
 * @property {number} [max] windows
 *
 * @typedef {import("./dialog.js").Values} Values
 */

const DAY_MS = 86400000;

/** Members of the address. */
const NAMES = ["range", "from", "to"];

/** Ranges to choose from; the first is the default. Those without days are a number of windows. */
const RANGES = [
    { name: "latest", label: "Latest", max: 100 },
    { name: "24h", label: "24 hours", days: 1 },
    { name: "7d", label: "7 days", days: 7 },
    { name: "30d", label: "30 days", days: 30 },
    { name: "1y", label: "1 year", days: 365 },
    { name: "all", label: "All" },
];

/**
 * What an address asks for: a period, or the time up to now.
 *
 * @param {URLSearchParams} query
 * @returns {Range}
 */
export function rangeOf(query) {
    const [from, to] = ["from", "to"].map((name) => Date.parse(query.get(name) ?? ""));
    if (from < to)
        return { name: "custom", from, to: to < Date.now() ? to : null };
    const { name, days, max } = RANGES.find((each) => each.name === query.get("range")) ?? RANGES[0];
    return { name, max, from: days ? Date.now() - days * DAY_MS : null, to: null };
}

/**
 * A range as parameters of the API.
 *
 * @param {Range} range
 * @param {string} [start] name of the first
 */
export function boundsOf({ from, to }, start = "from") {
    const text = (/** @type {number | null} */ at) => at === null ? null : new Date(at).toISOString();
    return { [start]: text(from), to: text(to) };
}

/** A range in words; empty for all. @param {Range} range */
export function rangeText({ name, from, to }) {
    const { label } = RANGES.find((each) => each.name === name) ?? { label: "" };
    return from === null ? "" : label ? `in the last ${label}` : `from ${time(from)} to ${to === null ? "now" : time(to)}`;
}

/**
 * Gives a link of this page the range that is looked at.
 *
 * @param {HTMLAnchorElement} link
 */
export function carryRange(link) {
    const url = new URL(link.href);
    const here = new URLSearchParams(location.search);
    for (const name of NAMES) {
        url.searchParams.delete(name);
        if (here.has(name))
            url.searchParams.set(name, here.get(name) ?? "");
    }
    link.href = url.href;
}

/**
 * Changes the address.
 *
 * @param {URLSearchParams} query
 * @param {Record<string, string | null>} changes null leaves one out
 */
export function changeAddress(query, changes) {
    for (const [name, value] of Object.entries(changes))
        if (value === null)
            query.delete(name);
        else
            query.set(name, value);
    history.replaceState(null, "", `?${query}`);
}

/** Buttons that choose a range. */
export class RangePicker {
    /** @param {(changes: Record<string, string | null>) => void} go changes the address, and loads what it asks for */
    constructor(go) {
        this.go = go;
        this.range = rangeOf(new URLSearchParams());
        this.node = element("div", { class: "buttons ranges", role: "group", "aria-label": "Time range" },
            ...RANGES.map(({ name, label }) => element("button", {
                type: "button", value: name, click: () => go({ range: name === RANGES[0].name ? null : name, from: null, to: null }),
            }, label)),
            element("button", { type: "button", value: "custom", click: () => this.choose() }, "Custom …"));
    }

    /** @param {URLSearchParams} query */
    show(query) {
        this.range = rangeOf(query);
        for (const button of this.node.querySelectorAll("button"))
            button.setAttribute("aria-pressed", String(button.value === this.range.name));
    }

    choose() {
        const { from, to } = this.range;
        return openDialog({
            title: "A range of time", button: "Show", fields: periodFields(from ?? Date.now() - DAY_MS, to ?? Date.now()),
            run: async (values) => {
                const { from: begin, to: end } = periodOf(values);
                if (begin >= end)
                    throw new ApiError(0, "range", "the end is not after the start");
                this.go({ from: begin, to: end });
            },
        });
    }
}

/* ---- Times that are entered, in the zone that is shown */

/** A moment as an input of date and time has it. @param {number} milliseconds */
export function localInput(milliseconds) {
    const offset = zone() === "utc" ? 0 : new Date(milliseconds).getTimezoneOffset();
    return new Date(milliseconds - offset * 60000).toISOString().slice(0, 19);
}

/** @param {string} text of an input of date and time */
export function moment(text) {
    return text ? new Date(zone() === "utc" ? `${text}Z` : text).toISOString() : "";
}

/**
 * A field for a moment, with its zone.
 *
 * @param {string} name
 * @param {string} label
 * @param {number | null} at
 * @param {boolean} required
 * @returns {import("./dialog.js").Field}
 */
export function timeField(name, label, at, required = true) {
    return { name, label: `${label}, ${zoneName()}`, type: "datetime-local", value: at === null ? "" : localInput(at),
             attributes: { required, step: 1 } };
}

/**
 * Fields for a period.
 *
 * @param {number} from
 * @param {number} to
 */
export function periodFields(from, to) {
    return [timeField("from", "From", from), timeField("to", "To", to)];
}

/** @param {Values} values */
export function periodOf(values) {
    return { from: moment(values.from), to: moment(values.to) };
}
