/* Shares of the bins over time, stacked: where the values moved to, and when. */
import { colourOf } from "./plot.js";
import { binName, edge, isolate, percent, shorten } from "./format.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Bin} Bin
 * @typedef {import("./points.js").Points} Points
 * @typedef {{ name: string, bins: number[], colour: string }} Layer bins that are drawn as one
 */

/** Layers of intervals, and labels that have a layer of their own, at most. */
const INTERVALS = 13;
const LABELS = 8;

/** Characters of a name in words. */
const NAME = 40;

/** Colours of the labels: as many as there are layers of labels. */
const HUES = Array.from({ length: LABELS }, (_, i) => `var(--hue-${i})`);
const REST = "var(--raised)";

/** A colour of the ramp from low values to high ones. @param {number} part of 1 */
function ramp(part) {
    return `color-mix(in oklab, var(--ramp-low), var(--ramp-high) ${Math.round(100 * part)}%)`;
}

/**
 * Layers of a monitor's bins, from the bottom up: intervals in their order, of many some together; labels by
 * their size; then what no bin counts.
 *
 * @param {Bin[]} bins of the window that is shown
 * @returns {Layer[]}
 */
export function layersOf(bins) {
    const places = (/** @type {string[]} */ kinds) =>
        bins.flatMap(({ kind }, i) => (kinds.includes(kind) ? [i] : []));
    const outer = [
        { kinds: ["other"], name: "other labels", colour: "var(--unseen)" },
        { kinds: ["missing"], name: "missing", colour: "var(--noise)" },
    ].map(({ kinds, name, colour }) => ({ name, bins: places(kinds), colour }))
        .filter((layer) => layer.bins.length > 0)
        .map((layer) => ({ ...layer, name: layer.colour === "var(--unseen)" && bins[layer.bins[0]].name !== "other"
            ? bins[layer.bins[0]].name : layer.name }));
    const labels = places(["label"]);
    return [...(labels.length > 0 ? labelLayers(bins, labels)
        : intervalLayers(bins, places(["underflow", "interval", "overflow"]))), ...outer];
}

/**
 * @param {Bin[]} bins
 * @param {number[]} places
 * @returns {Layer[]}
 */
function labelLayers(bins, places) {
    const size = (/** @type {number} */ i) => Math.max(bins[i].reference, bins[i].current);
    const greatest = new Set([...places].sort((a, b) => size(b) - size(a)).slice(0, LABELS));
    const own = places.filter((i) => greatest.has(i));
    const rest = places.filter((i) => !greatest.has(i));
    const layers = own.map((i, k) => ({ name: bins[i].name, bins: [i], colour: HUES[k] }));
    return rest.length > 0
        ? [...layers, { name: `${rest.length} labels more`, bins: rest, colour: REST }] : layers;
}

/**
 * @param {Bin[]} bins
 * @param {number[]} places
 * @returns {Layer[]}
 */
function intervalLayers(bins, places) {
    const each = Math.ceil(places.length / INTERVALS);
    const n = Math.ceil(places.length / each);
    return Array.from({ length: n }, (_, k) => {
        const own = places.slice(k * each, (k + 1) * each);
        return { name: nameOf(bins[own[0]], bins[own[own.length - 1]]), bins: own,
                 colour: ramp(n > 1 ? k / (n - 1) : 0) };
    });
}

/**
 * @param {Bin} first
 * @param {Bin} last
 */
function nameOf(first, last) {
    if (first === last && first.kind === "interval")
        return binName(first.name);
    if (first.lower === null)
        return `below ${edge(last.upper ?? 0)}`;
    return last.upper === null ? `above ${edge(first.lower)}` : `${edge(first.lower)} to ${edge(last.upper)}`;
}

/**
 * Tops of the layers at each point; null where there is no window with counts.
 *
 * @param {Points} points
 * @param {Layer[]} layers
 * @returns {(number[] | null)[]}
 */
export function stack({ results }, layers) {
    return results.map((result) => {
        const counts = result?.counts;
        if (!counts || !result.n)
            return null;
        let sum = 0;
        return layers.map(({ bins }) => (sum += bins.reduce((n, i) => n + counts[i], 0)) / result.n);
    });
}

/**
 * Draws the layers as bands; a window is as wide as to the middle of its neighbours.
 *
 * @param {uPlot} plot
 * @param {Points} points
 * @param {(number[] | null)[]} tops
 * @param {Layer[]} layers
 */
export function drawShares(plot, { seconds }, tops, layers) {
    const { ctx, bbox, root } = plot;
    const x = seconds.map((each) => plot.valToPos(each, "x", true));
    const middle = (/** @type {number} */ i, /** @type {number} */ j) =>
        x[j] === undefined || !tops[j] ? x[i] + (j - i) * 3 * devicePixelRatio : (x[i] + x[j]) / 2;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    layers.forEach((layer, k) => {
        ctx.fillStyle = colourOf(root, layer.colour);
        ctx.beginPath();
        tops.forEach((top, i) => {
            const left = middle(i, i - 1);
            const right = middle(i, i + 1);
            if (!top || right < bbox.left || left > bbox.left + bbox.width)
                return;
            const bottom = plot.valToPos(k > 0 ? top[k - 1] : 0, "y", true);
            const height = bottom - plot.valToPos(top[k], "y", true);
            ctx.rect(left, bottom - height, Math.max(right - left, 1), height);
        });
        ctx.fill();
    });
    ctx.restore();
}

/**
 * The layers of one window in words, the largest first.
 *
 * @param {Result} result
 * @param {Layer[]} layers
 */
export function describeShares(result, layers) {
    const counts = result.counts;
    if (!counts || !result.n)
        return "";
    return layers.map(({ name, bins }) =>
        ({ name, share: bins.reduce((n, i) => n + counts[i], 0) / result.n }))
        .filter(({ share }) => share > 0).sort((a, b) => b.share - a.share).slice(0, 4)
        .map(({ name, share }) => `${isolate(shorten(name, NAME))} ${percent(share)}`).join(", ");
}
