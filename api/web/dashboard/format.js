/* Numbers, times and sentences as people read them. */
import { visible } from "./dom.js";
import { zone } from "./settings.js";

/**
 * A number with three digits that count: 0.653, 12.3, 1.2e-5. Null is infinite, as in answers
 * of the API.
 *
 * @param {number | null | undefined} value
 */
export function number(value) {
    if (value === undefined)
        return "–";
    if (value === null || value === Infinity)
        return "∞";
    const size = Math.abs(value);
    if (size >= 100)
        return Math.round(value).toLocaleString("en");
    if (size > 0 && size < 1e-4)
        return value.toExponential(2);
    return String(Number(value.toPrecision(3)));
}

/** @param {number} value */
export function count(value) {
    return value.toLocaleString("en");
}

/** A count in few characters: 950, 1.2k, 30M. @param {number} value */
export function compact(value) {
    return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
}

/** @param {number | null} value */
export function nats(value) {
    return `${number(value)} nats`;
}

/**
 * A part of one, as per cent; a part that is there is never shown as 0 %.
 *
 * @param {number} value
 */
export function percent(value) {
    const of = value * 100;
    if (of === 0)
        return "0 %";
    if (of < 0.1)
        return "< 0.1 %";
    return `${of < 9.95 ? of.toFixed(1) : of.toFixed(0)} %`;
}

/** @param {number} p */
export function probability(p) {
    return p < 1e-300 ? "< 1e-300" : p < 1e-3 ? p.toExponential(1) : p.toPrecision(2);
}

/** Name of the zone in which times are shown. */
export function zoneName() {
    return zone() === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The zone at a moment: UTC, +05:30. @param {string | number} when */
export function zoneAt(when) {
    const minutes = zone() === "utc" ? 0 : -new Date(when).getTimezoneOffset();
    const two = (/** @type {number} */ n) => String(Math.floor(n)).padStart(2, "0");
    const size = Math.abs(minutes);
    return minutes === 0 ? "UTC" : `${minutes < 0 ? "−" : "+"}${two(size / 60)}:${two(size % 60)}`;
}

/**
 * A moment, to the second, with its zone: 2026-11-22 14:03:10 +01:00. Seconds that are 0 are left out.
 *
 * @param {string | number} when RFC 3339, or milliseconds
 * @param {boolean} [named] false where the zone is said beside it
 */
export function time(when, named = true) {
    const date = new Date(when);
    const shifted = zone() === "utc"
        ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60000);
    const text = shifted.toISOString();
    const clock = text.slice(11, 19);
    return `${text.slice(0, 10)} ${clock.endsWith(":00") ? clock.slice(0, 5) : clock}` +
        (named ? ` ${zoneAt(when)}` : "");
}

/**
 * When a window was: its end alone if it is one request.
 *
 * @param {{ start: string | number, end: string | number }} window
 */
export function span({ start, end }) {
    return start === end ? time(end) : `${time(start, zoneAt(start) !== zoneAt(end))} to ${time(end)}`;
}

const STEPS = /** @type {const} */ ([
    [31557600, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"],
]);

/**
 * A duration in its greatest unit: 3 d, 12 min.
 *
 * @param {number} seconds
 */
export function duration(seconds) {
    for (const [size, unit] of STEPS)
        if (seconds >= size * (size > 1 ? 1.5 : 1))
            return `${Math.round(seconds / size)} ${unit}`;
    return "0 s";
}

/** @param {string} when */
function secondsSince(when) {
    return (Date.now() - new Date(when).getTime()) / 1000;
}

/** For how long something lasts already. @param {string} when it began */
export function lasting(when) {
    return duration(Math.max(secondsSince(when), 0));
}

/** @param {string} when */
export function ago(when) {
    const seconds = secondsSince(when);
    return seconds < 0 ? `in ${duration(-seconds)}` : `${duration(seconds)} ago`;
}

/**
 * Words with commas, and an "and" before the last.
 *
 * @param {string[]} words
 */
export function list(words) {
    return words.length < 2
        ? words.join("")
        : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/**
 * @param {number} n
 * @param {string} noun
 */
export function plural(n, noun) {
    return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** What windows are compared with. @param {import("./types.js").Config["compare"]} compare */
export function comparedWith(compare) {
    if (typeof compare === "string")
        return "its reference";
    const windows = compare.previous === 1 ? "window" : `${compare.previous} windows`;
    if (compare.period === "month")
        return `the same day of the ${compare.previous === 1 ? "month" : `${compare.previous} months`} before`;
    return compare.period ? `the ${windows} before, ${duration(compare.period)} apart` : `the ${windows} before`;
}

/**
 * Keeps the direction of a name to itself, so that one written from right to left does not turn the
 * sentence around it, and shows controls of direction in it.
 *
 * @param {string} name
 */
export function isolate(name) {
    return `\u2068${visible(name)}\u2069`;
}

/** Names the windows that were judged with the newest. @param {number} before their number, without the newest */
export function withBefore(before) {
    return `together with the ${before === 1 ? "window" : plural(before, "window")} before`;
}

/**
 * A sentence of the server as people read it: each label that it quotes kept to itself, the number of its windows in words.
 *
 * @param {string} sentence
 */
export function sentenceText(sentence) {
    return sentence.replace(/with the (\d+) before: /, (_, n) => `${withBefore(Number(n))}: `)
        .replace(/“([^”]*)”/g, (_, label) => `“${isolate(label)}”`);
}

/**
 * A name that is cut where it is longer than so many characters.
 *
 * @param {string} name
 * @param {number} max
 */
export function shorten(name, max) {
    const characters = [...name];
    return characters.length <= max ? name : `${characters.slice(0, max - 1).join("")}…`;
}

/** Digits of an edge that tell it from its neighbours, mostly. */
const EDGE_DIGITS = 6;

/** @param {number} edge */
export function edge(edge) {
    return String(Number(edge.toPrecision(EDGE_DIGITS)));
}

/** The next number above one that is finite. @param {number} value */
function nextAbove(value) {
    const bits = new BigInt64Array(1);
    const numbers = new Float64Array(bits.buffer);
    numbers[0] = value + 0; /* -0 becomes 0 */
    bits[0] += value < 0 ? -1n : 1n;
    return numbers[0];
}

/**
 * Name of a bin for people: edges that are long decimals are cut, unless both would look the same; a bin of one
 * value has its name.
 *
 * @param {string} name
 */
export function binName(name) {
    const interval = /^\[([-+.\de]+), ([-+.\de]+)([)\]])$/.exec(name);
    const edges = interval ? [Number(interval[1]), Number(interval[2])] : [];
    if (!interval || !edges.every(Number.isFinite))
        return name;
    if (edges[1] === nextAbove(edges[0]))
        return edge(edges[0]);
    const [lower, upper] = edges.map(edge);
    return lower === upper ? name : `[${lower}, ${upper}${interval[3]}`;
}

/**
 * Name for people of a bin with its edges: the outer ones have those of the reference.
 *
 * @param {Pick<import("./types.js").Bin, "name" | "kind" | "lower" | "upper">} bin
 */
export function binTitle({ name, kind, lower, upper }) {
    if (kind === "underflow" && upper !== null)
        return `below ${edge(upper)}`;
    return kind === "overflow" && lower !== null ? `above ${edge(lower)}` : binName(name);
}

/** Labels that were never seen before, which a name has at most. */
const NEW_LABELS = 2;

/**
 * The bins of a result. What no label of the reference counts has the names of the labels that were never seen before.
 *
 * @param {{ bins?: import("./types.js").Bin[], unseen?: { label: string }[] }} result
 */
export function namedBins({ bins = [], unseen = [] }) {
    const names = unseen.slice(0, NEW_LABELS).map(({ label }) => label).join(", ");
    return names ? bins.map((bin) => bin.kind === "other" && bin.reference === 0
        ? { ...bin, name: `${names}${unseen.length > NEW_LABELS ? " …" : ""} (new)` } : bin) : bins;
}
