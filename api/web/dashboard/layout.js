/* Where the bars of bins lie: intervals on their axis, so that the area of each is its share; labels side by side. */
import { binName, edge, percent } from "./format.js";

/**
 * @typedef {import("./types.js").Bin} Bin
 * @typedef {"reference" | "current"} Part
 *
 * @typedef {object} Layout in parts of the width and of the height, from the left and from below
 * @property {{ x: number, width: number }[]} places of the bins
 * @property {(i: number, part: Part) => number} height of a bar
 * @property {boolean} overlaid true if the bars of a bin lie over each other
 * @property {{ x: number, text: string, room: number, anchor: "start" | "middle" | "end" }[]} names below the axis
 * @property {{ y: number, text: string }[]} marks beside it
 * @property {string} note what the axis is, if that is not plain
 */

/** Least width of an interval: one that holds a single value is seen, too. */
const LEAST = 0.012;

/** Width of a bin that has no place on the axis, and of the space before it. */
const APART = 0.09;
const SPACE = 0.02;

/** An axis is linear unless it is so many times as wide as its middle half of the bins. */
const SKEWED = 8;

/** Width of a name, of which there are as many as fit. */
const NAMED = 0.1;

/** @param {Bin} bin */
function isOuter({ kind }) {
    return kind === "underflow" || kind === "overflow" || kind === "missing" || kind === "other";
}

/** @param {Bin} bin */
function isSeen(bin) {
    return bin.reference > 0 || bin.current > 0;
}

/**
 * Bins that are drawn: all intervals and labels, and of the others those that hold something.
 *
 * @param {Bin[]} bins
 */
export function drawn(bins) {
    return bins.filter((bin) => !isOuter(bin) || isSeen(bin));
}

/**
 * @param {Bin[]} bins as drawn
 * @param {Part[]} parts
 * @returns {Layout}
 */
export function layoutOf(bins, parts) {
    const intervals = bins.filter(({ kind }) => kind === "interval");
    return intervals.length > 0 ? intervalLayout(bins, intervals, parts) : labelLayout(bins, parts);
}

/**
 * A scale that shows the middle of the values: logarithmic far from 0 where few intervals would fill a linear one.
 *
 * @param {Bin[]} intervals
 */
function scaleOf(intervals) {
    const edges = [intervals[0].lower ?? 0, ...intervals.map(({ upper }) => upper ?? 0)];
    const at = (/** @type {number} */ part) => edges[Math.round(part * (edges.length - 1))];
    const middle = at(0.75) - at(0.25);
    if (edges.length < 4 || edges[edges.length - 1] - edges[0] <= SKEWED * middle)
        return { of: (/** @type {number} */ x) => x, note: "" };
    if (edges[0] > 0)
        return { of: Math.log, note: "Logarithmic axis. " };
    const size = Math.abs(at(0.5)) || Math.max(Math.abs(at(0.25)), Math.abs(at(0.75))) || 1;
    return { of: (/** @type {number} */ x) => Math.asinh(x / size), note: "Axis logarithmic far from 0. " };
}

/**
 * Places of intervals on their axis within a width; those that are too narrow to be seen are made wider.
 *
 * @param {Bin[]} intervals
 * @param {(x: number) => number} of
 * @param {number} left
 * @param {number} width
 */
function placesOf(intervals, of, left, width) {
    const wide = intervals.map(({ lower, upper }) => of(upper ?? 0) - of(lower ?? 0));
    const all = wide.reduce((sum, each) => sum + each, 0) || 1;
    const least = Math.min(LEAST, 0.5 / intervals.length);
    const shown = wide.map((each) => Math.max(each / all, least));
    const sum = shown.reduce((total, each) => total + each, 0);
    let x = left;
    return shown.map((each) => {
        const place = { x, width: (each / sum) * width };
        x += place.width;
        return place;
    });
}

/**
 * @param {Bin[]} bins
 * @param {Bin[]} intervals
 * @param {Part[]} parts
 * @returns {Layout}
 */
function intervalLayout(bins, intervals, parts) {
    const { of, note } = scaleOf(intervals);
    const under = bins.filter(({ kind }) => kind === "underflow").length;
    const others = bins.length - intervals.length;
    const left = under * (APART + SPACE);
    const width = 1 - others * APART - (others > 0 ? SPACE * (1 + under) : 0);
    const inner = placesOf(intervals, of, left, width);
    let beside = left + width + SPACE;
    const places = bins.map((bin) => {
        if (bin.kind === "interval")
            return inner[intervals.indexOf(bin)];
        if (bin.kind === "underflow")
            return { x: 0, width: APART };
        beside += APART;
        return { x: beside - APART, width: APART };
    });
    const density = (/** @type {number} */ i, /** @type {Part} */ part) => bins[i][part] / places[i].width;
    const top = Math.max(...bins.flatMap((_, i) => parts.map((part) => density(i, part)))) || 1;
    return {
        places, overlaid: true, marks: [], note: `${note}The area of each bin is its share.`,
        height: (i, part) => density(i, part) / top, names: intervalNames(bins, places),
    };
}

/**
 * Edges of intervals, from left to right as many as fit, and the names of the bins beside.
 *
 * @param {Bin[]} bins
 * @param {{ x: number, width: number }[]} places
 */
function intervalNames(bins, places) {
    /** @type {Layout["names"]} */
    const names = [];
    let free = -Infinity;
    for (const [i, bin] of bins.entries()) {
        const { x, width } = places[i];
        if (bin.kind !== "interval")
            names.push({ x: x + width / 2, text: OUTER[bin.kind] ?? bin.kind, room: APART + SPACE, anchor: "middle" });
        else if (x >= free && (free = x + NAMED))
            names.push({ x, text: edge(bin.lower ?? 0), room: NAMED, anchor: names.length > 0 ? "middle" : "start" });
    }
    const last = bins.findLastIndex(({ kind }) => kind === "interval");
    const end = places[last].x + places[last].width;
    if (end >= free + NAMED / 2)
        names.push({ x: end, text: edge(bins[last].upper ?? 0), room: NAMED, anchor: "end" });
    return names;
}

/** What is beside the axis, in a word that fits. @type {Record<string, string>} */
const OUTER = { underflow: "below", overflow: "above" };

/**
 * @param {Bin[]} bins
 * @param {Part[]} parts
 * @returns {Layout}
 */
function labelLayout(bins, parts) {
    const outer = bins.filter(isOuter).length;
    const space = outer > 0 && outer < bins.length ? SPACE : 0;
    const width = (1 - space) / bins.length;
    const top = Math.max(...bins.flatMap((bin) => parts.map((part) => bin[part]))) || 1;
    const places = bins.map((bin, i) => ({ x: i * width + (isOuter(bin) ? space : 0), width }));
    const every = Math.ceil(NAMED / 2 / width);
    return {
        places, overlaid: false, note: "",
        height: (i, part) => bins[i][part] / top,
        marks: [0, 0.5, 1].map((y) => ({ y, text: percent(y * top) })),
        names: bins.flatMap((bin, i) => i % every === 0
            ? [{ x: places[i].x + width / 2, text: bin.name === "other" && bin.kind === "other" ? "other labels" : binName(bin.name),
                 room: width * every, anchor: "middle" }] : []),
    };
}
