/* What the charts over time share: uPlot, the time axis, fonts, colours of the style sheet. */
import { ApiError } from "./api.js";
import { zone } from "./settings.js";

/** @import uPlot from "./uplot.js" */

/** uPlot, which only a monitor's page needs.
 * @type {typeof uPlot | null} */
let Plot = null;
let attempts = 0;

/** Loads uPlot, if it is not there yet. A browser keeps a module that failed, by its address. */
export async function loadPlot() {
    if (Plot)
        return;
    const url = new URL("uplot.js", import.meta.url);
    if (attempts++ > 0)
        url.search = String(attempts);
    try {
        Plot = (await import(url.href)).default;
    } catch {
        throw new ApiError(0, "offline", "the server does not respond");
    }
}

/** Labels of the time axis by distance of its marks, seconds: what each mark says, and what is
 * added where the year, the month or the day begins. */
const DATES = [
    [31536000, "{YYYY}", null, null, null, null, null, null, 1],
    [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
    [0.001, "{HH}:{mm}:{ss}.{fff}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
];

/** Points of a series from which each is drawn as a dot of its own, too. */
const MANY = 60;

/**
 * Points of the first series that no line reaches, for there is none beside them.
 *
 * @param {uPlot} plot
 */
function lone({ data: [, values] }) {
    const none = (/** @type {number} */ i) => values[i] === null || values[i] === undefined;
    return [...values.keys()].filter((i) => !none(i) && none(i - 1) && none(i + 1));
}

/** Pixels of a rem, in which charts measure text. */
export function rem() {
    return parseFloat(getComputedStyle(document.documentElement).fontSize);
}

export function font(scale = 1) {
    return `${0.8 * rem() * scale}px system-ui, sans-serif`;
}

/** Colours that were asked for, by theme and value: a style that is asked for lays the page out.
 * @type {Map<string, string>} */
const colours = new Map();
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * A colour of the style sheet, as a canvas takes it.
 *
 * @param {Element} node
 * @param {string} value as a style sheet has it
 */
export function colourOf(node, value) {
    const key = `${document.documentElement.dataset.theme} ${dark.matches} ${value}`;
    const known = colours.get(key);
    if (known)
        return known;
    const probe = /** @type {HTMLElement} */ (node);
    const before = probe.style.color;
    probe.style.color = value;
    const { color } = getComputedStyle(probe);
    probe.style.color = before;
    colours.set(key, color);
    return color;
}

/**
 * @typedef {object} Panel a chart of the stack
 * @property {string} label of its value axis
 * @property {boolean} times true if the marks of the time axis are named below it
 * @property {number} [foot] height in rem of what is drawn below the chart, without times
 * @property {(value: number) => string} mark text of a mark of the value axis
 * @property {(plot: uPlot) => number[]} [marks] of the value axis, unless uPlot is to choose them
 * @property {(plot: uPlot, min: number, max: number | null) => number} top upper end of the value axis
 * @property {uPlot.Series[]} series without that of x
 * @property {uPlot.Hooks.Arrays} hooks
 */

/**
 * Makes a chart whose cursor and zoom go with those of the same key.
 *
 * @param {HTMLElement} frame
 * @param {string} key
 * @param {Panel} panel
 * @param {uPlot.AlignedData} points
 */
export function makePlot(frame, key, panel, points) {
    const Made = /** @type {typeof uPlot} */ (Plot);
    const small = rem();
    const colour = (/** @type {string} */ name) => colourOf(frame, `var(--${name})`);
    const axis = { font: font(), labelFont: font(), stroke: colour("quiet"),
                   grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
    return new Made({
        ...sizeOf(frame), legend: { show: false },
        tzDate: (seconds) => zone() === "utc"
            ? Made.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000),
        cursor: { y: false, drag: { setScale: true, x: true, y: false },
                  sync: { key, setSeries: false, scales: ["x", null] } },
        scales: { y: { range: (plot, min, max) => [0, panel.top(plot, min, max)] } },
        axes: [
            { ...axis, space: 5 * small, size: (panel.times ? 3 : panel.foot ?? 0.4) * small,
              values: panel.times ? /** @type {any} */ (DATES) : () => [] },
            { ...axis, size: 4.4 * small, label: panel.label, labelSize: 1.3 * small, space: 1.9 * small,
              values: (_, marks) => marks.map(panel.mark),
              ...(panel.marks && { splits: panel.marks }) },
        ],
        series: [{}, ...panel.series.map((each) => ({
            ...each, points: { show: (/** @type {uPlot} */ plot, /** @type {number} */ i) =>
                i === 1 && plot.data[0].length <= MANY, size: 5,
            filter: (/** @type {uPlot} */ plot, /** @type {number} */ i, /** @type {boolean} */ show) =>
                i === 1 && !show ? lone(plot) : null },
        }))],
        hooks: panel.hooks,
    }, points, frame);
}

/** @param {HTMLElement} frame */
export function sizeOf(frame) {
    return { width: Math.max(frame.clientWidth, 200), height: Math.max(frame.clientHeight, 60) };
}

/**
 * @param {uPlot} plot
 * @param {number} seconds
 */
export function isInside(plot, seconds) {
    const { min, max } = plot.scales.x;
    return seconds >= (min ?? Infinity) && seconds <= (max ?? -Infinity);
}

/**
 * A line from top to bottom.
 *
 * @param {uPlot} plot
 * @param {number} x
 * @param {string} colour
 */
export function drawLine({ ctx, bbox }, x, colour) {
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
}
