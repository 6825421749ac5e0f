/* Windows as columns of points for charts: one point for each window, gaps, and margins. */
import { axisEnd, endOf, gapsOf } from "./gaps.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Config} Config
 *
 * @typedef {object} Points
 * @property {import("./gaps.js").Gap[]} gaps
 * @property {(Result | null)[]} results window of each point; null beside the first and the last, and in gaps
 * @property {number[]} seconds when each ended
 */

/**
 * Seconds beside the first and the last window, into which the thresholds go on.
 *
 * @param {Result[]} windows
 */
function marginOf(windows) {
    const span = windows.length > 1 ? endOf(windows[windows.length - 1]) - endOf(windows[0]) : 0;
    return Math.max(span / 50, span > 0 ? 0 : 43200);
}

/**
 * The points of windows. A gap between windows of time is a point without a window.
 *
 * @param {Result[]} windows oldest first
 * @param {Config} config
 * @param {import("./gaps.js").Ending} ending
 * @returns {Points}
 */
export function pointsOf(windows, config, ending) {
    /** @type {Points} */
    const points = { gaps: [], results: [], seconds: [] };
    const add = (/** @type {Result | null} */ result, /** @type {number} */ seconds) => {
        points.results.push(result);
        points.seconds.push(seconds);
    };
    if (windows.length === 0)
        return points;
    const margin = marginOf(windows);
    const last = axisEnd(windows, ending);
    points.gaps = gapsOf(windows, config, last, ending);
    const breaks = new Map(points.gaps.map(({ from, to }) => [from, (from + to) / 2]));
    add(null, endOf(windows[0]) - margin);
    windows.forEach((result, i) => {
        const end = endOf(result);
        const middle = breaks.get(end);
        add(result, end);
        if (middle && i + 1 < windows.length && endOf(windows[i + 1]) > end)
            add(null, middle);
    });
    add(null, last);
    return points;
}

/**
 * Columns of the chart of KL: KL, thresholds, noise floor. A threshold is where an alarm begins: no lower than what is
 * significant. Thresholds go on into the margins.
 *
 * @param {Points} points
 */
export function klColumns({ results, seconds }) {
    const last = results.length - 1;
    const beside = (/** @type {number} */ i) =>
        i === 0 ? results[1] : i === last ? results[last - 1] : null;
    const level = (/** @type {(result: Result) => number | null} */ of) => results.map((result, i) => {
        const from = result ?? beside(i);
        return from ? of(from) : null;
    });
    return /** @type {uPlot.AlignedData} */ ([
        seconds, results.map((result) => result?.kl ?? null),
        level((result) => alarmsFrom(result, "warning")), level((result) => alarmsFrom(result, "critical")),
        level(({ noise_floor }) => noise_floor),
    ]);
}

/** @param {Result} result @param {"warning" | "critical"} level */
function alarmsFrom({ thresholds, g_test: test }, level) {
    return Math.max(thresholds[level], test?.critical_kl ?? 0);
}

/**
 * Columns of a chart of one number.
 *
 * @param {Points} points
 * @param {(result: Result) => number | null} of
 */
export function columnOf({ results, seconds }, of) {
    return /** @type {uPlot.AlignedData} */ ([seconds,
        results.map((result) => (result ? of(result) : null))]);
}
