/* Times without data: where they are, and how charts draw them. */
import { colourOf, font } from "./plot.js";
import { lasting, time } from "./format.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Config} Config
 * @typedef {{ from: number, to: number, last?: boolean }} Gap seconds; the last one lasts until now
 *
 * @typedef {object} Ending where the axis of time ends
 * @property {boolean} cut true if the silence before now may be cut
 * @property {number | null} to seconds; null for now
 */

/** Windows of time that are missing between two make a gap from so many lengths on. */
const MISSED = 1.5;

/** The axis of the latest windows ends before now if they are this many times shorter than the silence after them. */
const SHORT = 3;

/** The part of the axis after now, so that a window that ended now is not cut. */
const EDGE = 100;

/** The part of a chart that a text may be wide where its gap is narrower. */
const OVER = 4;

/** Pixels between the lines of a hatch, around a text, and of a line of it. */
const HATCH_PX = 7;
const PAD_PX = 4;
const LINE_PX = 16;

/** @param {Result} result */
export function endOf(result) {
    return Date.parse(result.window.end) / 1000;
}

/** Seconds of a window of time; 0 for others. @param {Config} config */
export function lengthOf({ window }) {
    return typeof window === "object" ? window.seconds ?? 0 : 0;
}

/**
 * Where the axis of time ends: now, or after a part of the silence that is as wide as a third of the windows.
 *
 * @param {Result[]} windows oldest first
 * @param {Ending} ending
 */
export function axisEnd(windows, { cut, to }) {
    const now = to ?? Date.now() / 1000;
    const first = endOf(windows[0]);
    const last = endOf(windows[windows.length - 1]);
    const span = last - first;
    const end = Math.max(now, last);
    return cut && span > 0 && now - last > SHORT * span ? last + span / SHORT : end + (end - first) / EDGE;
}

/**
 * @param {Result[]} windows oldest first
 * @param {Config} config
 * @param {number} end of the axis
 * @param {Ending} ending
 * @returns {Gap[]}
 */
export function gapsOf(windows, config, end, { to }) {
    const length = lengthOf(config);
    const ends = windows.map(endOf);
    const longest = length > 0 ? MISSED * length : config.stale_after ?? Infinity;
    /** @type {Gap[]} */
    const gaps = [];
    for (let i = 1; i < ends.length; i++) {
        const start = length > 0 ? ends[i] - length : Date.parse(windows[i].window.start) / 1000;
        if ((length > 0 ? ends[i] : start) - ends[i - 1] > longest)
            gaps.push({ from: ends[i - 1], to: start });
    }
    const last = ends[ends.length - 1];
    const now = to ?? Date.now() / 1000;
    if ((config.stale && to === null) || end < now - 1 || (length > 0 && now - last > MISSED * length))
        gaps.push({ from: last, to: Math.min(now, end), last: to === null });
    return gaps;
}

/**
 * What is written on a gap, in lines: the first of these that fits.
 *
 * @param {Gap} gap
 * @returns {string[][]}
 */
function textsOf({ from, last }) {
    const since = new Date(from * 1000).toISOString();
    return last ? [["no data since", time(since), `for ${lasting(since)}`], ["no data", `for ${lasting(since)}`]] : [["no data"]];
}

/**
 * Hatches the gaps, and says what they are where there is room; the last one is always told.
 *
 * @param {uPlot} plot
 * @param {Gap[]} gaps
 * @param {boolean} told
 */
export function drawGaps(plot, gaps, told) {
    const { ctx, bbox, root } = plot;
    const right = bbox.left + bbox.width;
    const place = (/** @type {number} */ seconds) =>
        Math.min(Math.max(plot.valToPos(seconds, "x", true), bbox.left), right);
    ctx.save();
    ctx.font = font(devicePixelRatio);
    const colour = colourOf(root, "var(--silent)");
    for (const gap of gaps) {
        const [from, to] = [place(gap.from), place(gap.to)];
        if (to - from < 1)
            continue;
        hatch(ctx, from, to, bbox, colour);
        const widthOf = (/** @type {string[]} */ lines) =>
            Math.max(...lines.map((line) => ctx.measureText(line).width)) + 2 * PAD_PX * devicePixelRatio;
        const texts = textsOf(gap);
        const lines = texts.find((each) => widthOf(each) < Math.max(to - from, bbox.width / OVER)) ?? texts[texts.length - 1];
        const width = widthOf(lines);
        if (told && (gap.last || width < to - from)) {
            const left = Math.max(Math.min((from + to - width) / 2, right - width), bbox.left);
            write(ctx, lines, { left, width, middle: bbox.top + bbox.height / 2 }, [colourOf(root, "var(--surface)"), colour]);
        }
    }
    ctx.restore();
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {string[]} lines
 * @param {{ left: number, width: number, middle: number }} box
 * @param {[ground: string, colour: string]} colours
 */
function write(ctx, lines, { left, width, middle }, [ground, colour]) {
    const height = LINE_PX * devicePixelRatio;
    const top = middle - (lines.length * height) / 2;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = ground;
    ctx.fillRect(left, top, width, lines.length * height);
    ctx.fillStyle = colour;
    lines.forEach((line, i) => ctx.fillText(line, left + width / 2, top + (i + 0.5) * height));
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} from
 * @param {number} to
 * @param {uPlot.BBox} box
 * @param {string} colour
 */
function hatch(ctx, from, to, { top, height }, colour) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, top, to - from, height);
    ctx.clip();
    ctx.beginPath();
    ctx.strokeStyle = colour;
    ctx.globalAlpha = 0.45;
    ctx.setLineDash([]);
    ctx.lineWidth = devicePixelRatio;
    for (let x = from - height; x < to; x += HATCH_PX * devicePixelRatio) {
        ctx.moveTo(x, top + height);
        ctx.lineTo(x + height, top);
    }
    ctx.stroke();
    ctx.restore();
}
