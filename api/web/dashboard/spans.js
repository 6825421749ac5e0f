/* Spans of time in which a monitor was not ok, shaded; a mark where each alarm began. */
import { colourOf, drawLine, font, isInside, rem } from "./plot.js";
import { isAlarm, STATES, word } from "./states.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").State} State
 * @typedef {{ from: number, to: number, state: State }} Span seconds; `to` is infinite for the present
 */

/** Pixels that the word of a mark needs. */
const WORD_PX = 105;

/** Pixels from the middle of a mark to its corners. */
const MARK_PX = 5;

/**
 * Spans of the states that are alarms.
 *
 * @param {Change[]} changes newest first
 * @returns {Span[]}
 */
export function spansOf(changes) {
    const spans = [];
    let to = Infinity;
    for (const change of changes) {
        const from = Date.parse(change.at) / 1000;
        if (isAlarm(change.to))
            spans.push({ from, to, state: change.to });
        to = from;
    }
    const first = changes[changes.length - 1];
    if (first && isAlarm(first.from))
        spans.push({ from: -Infinity, to, state: first.from });
    return spans;
}

/**
 * True of changes but for those of silence.
 *
 * @param {import("./types.js").Event} event
 * @returns {event is Change}
 */
export function isOfWindow(event) {
    return event.window !== null;
}

/** True if a change is to something worse. @param {Change} change */
export function rises(change) {
    return isAlarm(change.to) && STATES.indexOf(change.to) < STATES.indexOf(change.from);
}

/**
 * Shades the spans; below everything else.
 *
 * @param {uPlot} plot
 * @param {Span[]} spans
 */
export function shadeSpans(plot, spans) {
    const { ctx, bbox, root } = plot;
    const place = (/** @type {number} */ seconds) =>
        Math.min(Math.max(plot.valToPos(seconds, "x", true), bbox.left), bbox.left + bbox.width);
    ctx.save();
    for (const { from, to, state } of spans) {
        const left = from === -Infinity ? bbox.left : place(from);
        const right = to === Infinity ? bbox.left + bbox.width : place(to);
        ctx.fillStyle = colourOf(root, `var(--tint-${state})`);
        ctx.fillRect(left, bbox.top, Math.max(right - left, devicePixelRatio), bbox.height);
    }
    ctx.restore();
}

/**
 * Marks where alarms began, with a word where there is room.
 *
 * @param {uPlot} plot
 * @param {Change[]} changes newest first
 * @param {(window: number) => boolean} isOfRows true if the number of rows decided
 */
export function markAlarms(plot, changes, isOfRows) {
    const { ctx, bbox, root } = plot;
    const scale = devicePixelRatio;
    let free = Infinity; /* to the left of the words so far, which go from right to left */
    ctx.save();
    ctx.font = font(scale);
    ctx.textBaseline = "top";
    for (const change of changes) {
        const seconds = Date.parse(change.at) / 1000;
        if (!rises(change) || !isInside(plot, seconds))
            continue;
        const x = plot.valToPos(seconds, "x", true);
        const colour = colourOf(root, `var(--${change.to})`);
        drawLine(plot, x, colour);
        drawMark(ctx, x, bbox.top, MARK_PX * scale, colour);
        if (free - x < WORD_PX * scale)
            continue;
        const fits = x + WORD_PX * scale < bbox.left + bbox.width;
        free = fits ? x : x - WORD_PX * scale;
        ctx.textAlign = fits ? "left" : "right";
        ctx.fillText(`${word(change.to)}${isOfRows(change.window) ? " (rows)" : ""}`, x + (fits ? 1 : -1) * (MARK_PX + 3) * scale, bbox.top + 0.1 * rem() * scale);
    }
    ctx.restore();
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} x
 * @param {number} top
 * @param {number} size
 * @param {string} colour
 */
function drawMark(ctx, x, top, size, colour) {
    ctx.fillStyle = colour;
    ctx.beginPath();
    ctx.moveTo(x - size, top);
    ctx.lineTo(x + size, top);
    ctx.lineTo(x, top + 1.6 * size);
    ctx.fill();
}
