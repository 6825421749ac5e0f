/* A monitor over time: KL, shares of the bins, values, missing and unseen, on one time axis with one cursor. */
import { element, fill, freshId, renew } from "./dom.js";
import { drawGaps, endOf } from "./gaps.js";
import { compact, namedBins, nats, number, percent, plural, span, time } from "./format.js";
import { onArrows } from "./keys.js";
import { markNotes, NOTES_REM } from "./notes.js";
import { colourOf, drawLine, font, isInside, makePlot, rem, sizeOf } from "./plot.js";
import { columnOf, klColumns, pointsOf } from "./points.js";
import { describeShares, drawShares, layersOf, stack } from "./shares.js";
import { markAlarms, shadeSpans, spansOf } from "./spans.js";
import { decidedBy, isOfRows } from "./sentences.js";
import { word } from "./states.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").Config} Config
 * @typedef {import("./points.js").Points} Points
 * @typedef {import("./plot.js").Panel} Panel
 *
 * @typedef {object} History what a chart shows
 * @property {Result[]} windows oldest first
 * @property {Change[]} changes newest first
 * @property {import("./types.js").Note[]} notes earliest first
 * @property {Config} config
 * @property {Result | null} result the window whose bins are shown
 * @property {[number, number] | null} zoom seconds, or null for all
 * @property {import("./gaps.js").Ending} ending
 */

/** Milliseconds within which a second click makes a double one, which ends the zoom. */
const DOUBLE_MS = 250;

/** Pixels beyond which a press is a drag, which zooms. */
const DRAG_PX = 5;

const LEGEND = [
    ["line-kl", "KL of a window"], ["line-warning", "warning limit"],
    ["line-critical", "critical limit: the threshold, or what chance can reach if that is higher"],
    ["line-noise", "noise floor: KL to expect from so few values without any drift"],
];

/** Charts below that of KL: a name, the number of a window, how it is written, and if it is shown.
 * @type {{ name: string, label: string, of: (result: Result) => number | null, colour: string,
 *          mark: (value: number) => string, always?: boolean }[]} */
const NUMBERS = [
    { name: "values", label: "values", of: ({ n }) => n, colour: "quiet", mark: compact, always: true },
    { name: "missing", label: "missing", of: ({ missing_ratio }) => missing_ratio, colour: "noise",
      mark: percent },
    { name: "unseen", label: "unseen", of: ({ unseen_ratio }) => unseen_ratio, colour: "unseen",
      mark: percent },
];

let keys = 0;

export class Timeline {
    /**
     * @param {(id: number) => void} select called with the window that the reader chooses
     * @param {(zoom: [number, number] | null) => void} zoomed called with the seconds that are drawn
     */
    constructor(select, zoomed) {
        this.select = select;
        this.zoomed = zoomed;
        this.key = `timeline${keys++}`;
        /** @type {Points} */
        this.points = { gaps: [], results: [], seconds: [] };
        /** @type {History | null} */
        this.history = null;
        /** @type {import("./shares.js").Layer[]} */
        this.layers = [];
        /** @type {(number[] | null)[]} */
        this.tops = [];
        this.close = false;
        this.at = -1;
        this.pressed = 0;
        this.pointed = false; /* true if a pointer, not a key, moved last */
        /** Charts by name, the first is that of KL.
         * @type {Map<string, { plot: uPlot, frame: HTMLElement }>} */
        this.charts = new Map();
        const readout = freshId();
        this.readout = element("p", { class: "readout", id: readout, "aria-live": "polite" });
        this.stack = element("div", { class: "stack" });
        this.frame = element("div", {
            class: "timeline", tabindex: 0, role: "group", "aria-describedby": readout,
            "aria-label": "KL over time. Left and right go from window to window, Enter opens " +
                "one. The table below has the same numbers.",
            pointermove: () => (this.pointed = true),
            pointerdown: (/** @type {PointerEvent} */ event) => (this.pressed = event.clientX),
            click: (/** @type {MouseEvent} */ event) => this.clicked(event),
        }, this.stack);
        onArrows(this.frame, (move) => this.move(move), () => this.choose());
        this.fit = element("button", {
            type: "button", "aria-pressed": "false", click: () => this.toggle(),
            title: "Let the axis end above the greatest KL instead of the critical threshold",
        }, "Zoom in on KL");
        this.whole = element("button", { type: "button", click: () => this.zoomTo(null) }, "Show the whole range");
        this.names = element("ul", { class: "legend", "aria-label": "Bins of the shares" });
        const legend = element("ul", { class: "legend" }, ...LEGEND.map(([name, text]) =>
            element("li", {}, element("i", { class: name }), text)));
        this.below = element("div", { class: "buttons" }, legend, this.fit, this.whole);
        this.node = element("div", {}, this.frame, this.readout, this.below, this.names);
        this.resized = new ResizeObserver(() => this.resize());
        this.resized.observe(this.frame);
    }

    stop() {
        clearTimeout(this.waiting);
        this.resized.disconnect();
        this.redraw();
    }

    /** @param {History} history */
    show(history) {
        this.history = history;
        this.points = pointsOf(history.windows, history.config, history.ending);
        this.spans = spansOf(history.changes);
        this.layers = layersOf(history.result ? namedBins(history.result) : []);
        this.tops = stack(this.points, this.layers);
        this.frame.hidden = this.below.hidden = this.names.hidden = history.windows.length === 0;
        if (history.windows.length === 0) {
            fill(this.readout, "No data in this range", history.result &&
                `: the window that is shown ended ${time(history.result.window.end)}`, ".");
            return;
        }
        this.fit.hidden = !this.close && !this.isBelowLimits();
        this.showNames();
        this.showCharts();
        this.zoomTo(history.zoom);
        this.say();
    }

    /** Charts that this monitor needs, and their points. @returns {[string, Panel, uPlot.AlignedData][]} */
    wanted() {
        const { points } = this;
        const hasShares = this.tops.some((top) => top !== null);
        const numbers = NUMBERS.filter(({ of, always }) =>
            always || points.results.some((result) => result && (of(result) ?? 0) > 0));
        const last = numbers[numbers.length - 1].name;
        return [
            ["kl", this.klPanel(), klColumns(points)],
            ...(hasShares ? [/** @type {[string, Panel, uPlot.AlignedData]} */ (
                ["shares", this.sharesPanel(), columnOf(points, () => null)])] : []),
            ...numbers.map((each) => /** @type {[string, Panel, uPlot.AlignedData]} */ (
                [each.name, this.numberPanel(each, each.name === last), columnOf(points, each.of)])),
        ];
    }

    /** Makes the charts, or gives those that are there their new points. */
    showCharts() {
        const wanted = this.wanted();
        if (String([...this.charts.keys()]) !== String(wanted.map(([name]) => name)))
            this.redraw();
        for (const [name, panel, points] of wanted) {
            const known = this.charts.get(name);
            if (known) {
                known.plot.setData(points, false);
                known.plot.redraw(true, true);
                continue;
            }
            const frame = element("div", { class: `chart ${name}` });
            this.stack.append(frame);
            this.charts.set(name, { plot: makePlot(frame, this.key, panel, points), frame });
        }
    }

    /** Forgets the charts: colours and times have changed. */
    redraw() {
        for (const { plot } of this.charts.values())
            plot.destroy();
        this.charts.clear();
        fill(this.stack);
    }

    /** @param {string} name */
    colour(name) {
        return colourOf(this.stack, `var(--${name})`);
    }

    /** @returns {Panel} */
    klPanel() {
        const level = (/** @type {string} */ name, /** @type {number[]} */ dash) =>
            ({ stroke: this.colour(name), dash, width: 1.5 });
        return {
            label: "KL, nats", times: false, foot: NOTES_REM, mark: number, top: (_, __, max) => this.top(max),
            series: [{ stroke: this.colour("kl"), width: 2 }, level("warning", [6, 4]),
                     level("critical", [6, 4]), level("noise", [2, 3])],
            hooks: {
                drawClear: [(plot) => shadeSpans(plot, this.spans ?? [])],
                draw: [(plot) => drawGaps(plot, this.points.gaps, true), (plot) => this.mark(plot), (plot) => markAlarms(plot, this.history?.changes ?? [], (id) => this.isOfRows(id)),
                       (plot) => markNotes(plot, this.history?.notes ?? [])],
                setCursor: [(plot) => this.pointed && this.point(plot.cursor.idx ?? -1)],
                setScale: [(plot, key) => key === "x" && this.scaled(plot)],
            },
        };
    }

    /** @returns {Panel} */
    sharesPanel() {
        return {
            label: "shares", times: false, mark: percent, top: () => 1, marks: () => [0, 0.5, 1], series: [{}],
            hooks: { draw: [(plot) => drawGaps(plot, this.points.gaps, false), (plot) => drawShares(plot, this.points, this.tops, this.layers),
                            (plot) => this.markSelected(plot)] },
        };
    }

    /**
     * @param {typeof NUMBERS[number]} of
     * @param {boolean} times
     * @returns {Panel}
     */
    numberPanel({ label, colour, mark }, times) {
        return {
            label, times, mark, top: (_, __, max) => max || 1,
            marks: (plot) => [0, plot.scales.y.max ?? 1],
            series: [{ stroke: this.colour(colour), fill: colourOf(this.stack,
                `color-mix(in srgb, var(--${colour}) 25%, transparent)`), width: 1.5 }],
            hooks: { drawClear: [(plot) => shadeSpans(plot, this.spans ?? [])],
                     draw: [(plot) => drawGaps(plot, this.points.gaps, false), (plot) => this.markSelected(plot)] },
        };
    }

    showNames() {
        const shown = this.tops.some((top) => top !== null);
        renew(this.names, ...(shown ? this.layers.map(({ name, colour }) => {
            const patch = element("i", {});
            patch.style.background = colour;
            return element("li", {}, patch, element("bdi", {}, name));
        }) : []));
    }

    resize() {
        for (const { plot, frame } of this.charts.values()) {
            const size = sizeOf(frame);
            if (plot.width !== size.width || plot.height !== size.height)
                plot.setSize(size);
        }
    }

    /** True if a limit is above the greatest KL: the axis may end lower. */
    isBelowLimits() {
        const [, kl, ...limits] = klColumns(this.points);
        const greatest = (/** @type {ArrayLike<number | null | undefined>} */ values) => Math.max(0, ...Array.from(values, (value) => value ?? 0));
        return limits.some((limit) => greatest(limit) > greatest(kl));
    }

    /** Upper end of the axis of KL. @param {number | null} max of all series */
    top(max) {
        const finite = this.points.results.map((result) => result?.kl ?? 0);
        const greatest = this.close ? Math.max(...finite) : Math.max(max ?? 0, ...finite);
        return greatest * 1.15 || 1;
    }

    toggle() {
        this.close = !this.close;
        this.fit.setAttribute("aria-pressed", String(this.close));
        for (const { plot } of this.charts.values())
            plot.setData(plot.data, false);
        this.zoomTo(this.history?.zoom ?? null);
    }

    /** Ends of the points. @returns {[number, number]} */
    ends() {
        const { seconds } = this.points;
        return [seconds[0], seconds[seconds.length - 1]];
    }

    /**
     * Draws a part of the range, or all of it.
     *
     * @param {[number, number] | null} zoom
     */
    zoomTo(zoom) {
        const [min, max] = zoom ?? this.ends();
        for (const { plot } of this.charts.values())
            plot.setScale("x", { min, max });
        this.whole.hidden = !zoom;
    }

    /** Tells what is drawn now, if that is not what was to be drawn. @param {uPlot} plot */
    scaled(plot) {
        const { min, max } = plot.scales.x;
        const [first, last] = this.ends();
        const [from, to] = this.history?.zoom ?? [first, last];
        if (!this.history || min === undefined || max === undefined || (min === from && max === to))
            return;
        const zoom = /** @type {[number, number] | null} */ (min > first || max < last ? [min, max] : null);
        this.history.zoom = zoom;
        this.whole.hidden = !zoom;
        this.zoomed(zoom);
    }

    /** @param {MouseEvent} event */
    clicked(event) {
        clearTimeout(this.waiting);
        if (Math.abs(event.clientX - this.pressed) < DRAG_PX && event.detail === 1)
            this.waiting = setTimeout(() => this.choose(), DOUBLE_MS);
    }

    /** @param {number} at */
    point(at) {
        if (this.points.results[at] && at !== this.at) {
            this.at = at;
            this.say();
        }
    }

    /** @param {number} step */
    move(step) {
        const places = this.points.results.flatMap((result, i) => (result ? [i] : []));
        const from = this.at < 0 ? places.length : places.indexOf(this.at);
        const at = places[Math.min(Math.max(from + step, 0), places.length - 1)];
        const plot = this.charts.get("kl")?.plot;
        this.pointed = false;
        plot?.setCursor({ left: plot.valToPos(this.points.seconds[at], "x"), top: 0 });
        this.point(at);
    }

    choose() {
        const result = this.points.results[this.at];
        if (result)
            this.select(result.window.id);
    }

    say() {
        const result = this.points.results[this.at] ?? this.history?.result;
        renew(this.readout, result ? describe(result, describeShares(result, this.layers)) : "");
    }

    /** Marks infinite windows, and the one whose bins are shown. @param {uPlot} plot */
    mark(plot) {
        const { ctx, bbox } = plot;
        const { results, seconds } = this.points;
        const room = 1.2 * rem() * devicePixelRatio;
        let free = -Infinity;
        ctx.save();
        ctx.font = font(1.3 * devicePixelRatio);
        ctx.fillStyle = this.colour("critical");
        ctx.textAlign = "right";
        ctx.textBaseline = "top";
        results.forEach((result, i) => {
            if (!result?.infinite || !isInside(plot, seconds[i]))
                return;
            this.climb(plot, i);
            const x = plot.valToPos(seconds[i], "x", true);
            if (x < free)
                return;
            free = x + room;
            ctx.fillText("∞", x - room / 2, bbox.top);
        });
        ctx.restore();
        this.markReferences(plot);
        this.markOpen(plot);
        this.markSelected(plot);
    }

    /** True if a window's number of rows decided its verdict. @param {number} id */
    isOfRows(id) {
        const result = this.points.results.find((each) => each?.window.id === id);
        return Boolean(result && isOfRows(result));
    }

    /** Marks the first window of each new reference. @param {uPlot} plot */
    markReferences(plot) {
        const { ctx, bbox } = plot;
        const known = this.points.results.flatMap((result) => result ?? []);
        ctx.save();
        ctx.font = font(devicePixelRatio);
        ctx.textBaseline = "bottom";
        known.forEach((result, i) => {
            const start = Date.parse(result.window.start) / 1000;
            if (i === 0 || known[i - 1].revision === result.revision || !isInside(plot, start))
                return;
            const x = plot.valToPos(start, "x", true);
            drawLine(plot, x, this.colour("reference"));
            ctx.fillStyle = this.colour("quiet");
            ctx.textAlign = x < bbox.left + bbox.width / 2 ? "left" : "right";
            ctx.fillText(" new reference ", x, bbox.top + bbox.height);
        });
        ctx.restore();
    }

    /** Marks a window that is still open by a ring and a word. @param {uPlot} plot */
    markOpen(plot) {
        const { ctx } = plot;
        const at = this.points.results.findLastIndex((result) => result && !result.window.closed && result.kl !== null);
        const seconds = this.points.seconds[at];
        if (at < 0 || !isInside(plot, seconds))
            return;
        const [x, y] = [plot.valToPos(seconds, "x", true), plot.valToPos(this.points.results[at]?.kl ?? 0, "y", true)];
        ctx.save();
        ctx.strokeStyle = this.colour("kl");
        ctx.fillStyle = this.colour("surface");
        ctx.lineWidth = 2 * devicePixelRatio;
        ctx.setLineDash([]);
        ctx.beginPath();
        ctx.arc(x, y, 4 * devicePixelRatio, 0, 2 * Math.PI);
        ctx.fill();
        ctx.stroke();
        ctx.font = font(devicePixelRatio);
        ctx.fillStyle = this.colour("quiet");
        ctx.textAlign = "right";
        ctx.fillText("open", x - 8 * devicePixelRatio, y);
        ctx.restore();
    }

    /** Draws the line of KL from the windows beside an infinite one up to the top. @param {uPlot} plot @param {number} i */
    climb(plot, i) {
        const { ctx, bbox } = plot;
        const { results, seconds } = this.points;
        const x = (/** @type {number} */ at) => plot.valToPos(seconds[at], "x", true);
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        ctx.strokeStyle = this.colour("kl");
        ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
        ctx.lineWidth = 2 * devicePixelRatio;
        ctx.beginPath();
        for (const beside of [i - 1, i + 1]) {
            const kl = results[beside]?.kl;
            ctx.moveTo(x(i), bbox.top + 1);
            if (typeof kl === "number")
                ctx.lineTo(x(beside), plot.valToPos(kl, "y", true));
            else if (results[beside]?.infinite)
                ctx.lineTo(x(beside), bbox.top + 1);
        }
        ctx.stroke();
        ctx.beginPath();
        ctx.arc(x(i), bbox.top, 4 * devicePixelRatio, 0, 2 * Math.PI);
        ctx.fill();
        ctx.restore();
    }

    /** @param {uPlot} plot */
    markSelected(plot) {
        const selected = this.history?.result;
        const seconds = selected ? endOf(selected) : NaN;
        if (isInside(plot, seconds))
            drawLine(plot, plot.valToPos(seconds, "x", true), this.colour("focus"));
    }
}

/**
 * @param {Result} result
 * @param {string} shares
 */
function describe(result, shares) {
    const { warning, critical } = result.thresholds;
    const kl = result.kl === null && !result.infinite
        ? "no KL: nothing to compare with" : `KL ${number(result.kl)} nats`;
    const by = decidedBy(result);
    const noise = result.noise_floor === null ? "" : `noise floor ${nats(result.noise_floor)}; `;
    const from = result.g_test?.critical_kl ?? 0;
    const significant = from > warning ? `; significant from ${number(from)}` : "";
    return `${span(result.window)}${result.window.closed ? "" : " (still open)"}: ${kl}, ` +
        `${word(result.verdict)}${by && ` ${by}`}; ${plural(result.n, "value")}; ${noise}thresholds ` +
        `${number(warning)} and ${number(critical)} nats${significant}${shares && `; ${shares}`}`;
}
