/* KL over time: thresholds, noise floor, gaps, infinity, changes of state. */
import { ApiError } from "./api.js";
import { element, fill, freshId, renew } from "./dom.js";
import { nats, number, plural, span } from "./format.js";
import { onArrows } from "./keys.js";
import { zone } from "./settings.js";
import { word } from "./states.js";

/**
 * @import uPlot from "./uplot.js"
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Change} Change
 * @typedef {import("./types.js").Config} Config
 */

/** uPlot, which only this chart needs.
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

/** Milliseconds within which a second click makes a double one, which ends the zoom. */
const DOUBLE_MS = 250;

/** Pixels beyond which a press is a drag, which zooms. */
const DRAG_PX = 5;

/** Pixels that the word of a change of state needs. */
const WORD_PX = 90;

const LEGEND = [
    ["line-kl", "KL of a window"], ["line-warning", "warning threshold"],
    ["line-critical", "critical threshold"],
    ["line-noise", "noise floor: KL to expect from so few values without any drift"],
];

export class KlChart {
    /** @param {(id: number) => void} select called with the window that the reader chooses */
    constructor(select) {
        this.select = select;
        /** Window of each point; null beside the first and the last, and in gaps.
         * @type {(Result | null)[]} */
        this.windows = [];
        /** @type {Change[]} */
        this.changes = [];
        this.close = false;
        this.at = -1;
        this.pressed = 0;
        this.points = false; /* true if a pointer, not a key, moved last */
        /** @type {uPlot | null} */
        this.plot = null;
        const readout = freshId();
        this.readout = element("p", { class: "readout", id: readout, "aria-live": "polite" });
        this.frame = element("div", {
            class: "chart", tabindex: 0, role: "group", "aria-describedby": readout,
            "aria-label": "KL over time. Left and right go from window to window, Enter opens " +
                "one. The table below has the same numbers.",
            pointermove: () => (this.points = true),
            pointerdown: (/** @type {PointerEvent} */ event) => (this.pressed = event.clientX),
            click: (/** @type {MouseEvent} */ event) => {
                clearTimeout(this.clicked);
                if (Math.abs(event.clientX - this.pressed) < DRAG_PX && event.detail === 1)
                    this.clicked = setTimeout(() => this.choose(), DOUBLE_MS);
            },
        });
        onArrows(this.frame, (move) => this.move(move), () => this.choose());
        this.zoom = element("button", {
            type: "button", "aria-pressed": "false", click: () => this.toggle(),
            title: "Let the axis end above the greatest KL instead of the critical threshold",
        }, "Fit to KL");
        const legend = element("ul", { class: "legend" }, ...LEGEND.map(([name, text]) =>
            element("li", {}, element("i", { class: name }), text)));
        this.node = element("div", {}, this.frame, this.readout,
            element("div", { class: "buttons" }, legend, this.zoom));
        this.resized = new ResizeObserver(() => this.resize());
        this.resized.observe(this.frame);
    }

    stop() {
        clearTimeout(this.clicked);
        this.resized.disconnect();
        this.plot?.destroy();
    }

    /**
     * @param {Result[]} windows oldest first
     * @param {Change[]} changes
     * @param {Config} config
     * @param {number | null} selected
     */
    show(windows, changes, config, selected) {
        const { points, results } = pointsOf(windows, config);
        this.windows = results;
        this.changes = changes;
        this.selected = selected;
        this.frame.hidden = windows.length === 0;
        if (windows.length === 0) {
            fill(this.readout, "No windows in this range.");
            return;
        }
        if (this.plot)
            this.update(this.plot, points);
        else if (Plot)
            this.plot = this.make(Plot, points);
        this.say();
    }

    /**
     * Shows other points; a part that the reader has zoomed into stays.
     *
     * @param {uPlot} plot
     * @param {uPlot.AlignedData} points
     */
    update(plot, points) {
        const { min, max } = plot.scales.x;
        const [before] = plot.data;
        const zoomed = min !== before[0] || max !== before[before.length - 1];
        const same = points[0][0] === before[0];
        plot.setData(points, !(zoomed && same));
        if (zoomed && same && min !== undefined && max !== undefined)
            plot.setScale("x", { min, max });
    }

    /** Forgets colours and times, which have changed. */
    redraw() {
        this.plot?.destroy();
        this.plot = null;
    }

    /** A colour of the style sheet, as a canvas takes it. @param {string} name */
    colour(name) {
        this.frame.style.color = `var(--${name})`;
        const { color } = getComputedStyle(this.frame);
        this.frame.style.color = "";
        return color;
    }

    /**
     * @param {typeof uPlot} Plot
     * @param {uPlot.AlignedData} points
     */
    make(Plot, points) {
        const colour = (/** @type {string} */ name) => this.colour(name);
        const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
        const font = `${0.8 * rem}px system-ui, sans-serif`;
        const axis = { font, labelFont: font, stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 },
                       ticks: { stroke: colour("line") } };
        const level = (/** @type {string} */ name, /** @type {number[]} */ dash) =>
            ({ stroke: colour(name), dash, width: 1.5, points: { show: false } });
        return new Plot({
            ...this.size(), legend: { show: false },
            tzDate: (seconds) => zone() === "utc"
                ? Plot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000),
            cursor: { y: false, drag: { setScale: true, x: true, y: false } },
            scales: { y: { range: (_, __, max) => [0, this.top(max)] } },
            axes: [{ ...axis, values: /** @type {any} */ (DATES), space: 5 * rem,
                     size: 3.4 * rem },
                   { ...axis, size: 4.4 * rem, label: "nats", labelSize: 1.3 * rem,
                     values: (_, marks) => marks.map(number) }],
            series: [{}, { stroke: colour("kl"), width: 2, points: { size: 5 } },
                     level("warning", [6, 4]), level("critical", [6, 4]), level("noise", [2, 3])],
            hooks: {
                setCursor: [(plot) => this.points && this.point(plot.cursor.idx ?? -1)],
                draw: [(plot) => this.mark(plot)],
            },
        }, points, this.frame);
    }

    size() {
        return { width: Math.max(this.frame.clientWidth, 200),
                 height: Math.max(this.frame.clientHeight, 200) };
    }

    resize() {
        const size = this.size();
        if (this.plot && (this.plot.width !== size.width || this.plot.height !== size.height))
            this.plot.setSize(size);
    }

    /** Upper end of the axis. @param {number | null} max of all series */
    top(max) {
        const finite = this.windows.map((result) => result?.kl ?? 0);
        const greatest = this.close ? Math.max(...finite) : Math.max(max ?? 0, ...finite);
        return greatest * 1.15 || 1;
    }

    toggle() {
        this.close = !this.close;
        this.zoom.setAttribute("aria-pressed", String(this.close));
        this.plot?.redraw(true, true);
        this.plot?.setData(this.plot.data);
    }

    /** @param {number} at */
    point(at) {
        if (this.windows[at] && at !== this.at) {
            this.at = at;
            this.say();
        }
    }

    /** @param {number} step */
    move(step) {
        const places = this.windows.flatMap((result, i) => (result ? [i] : []));
        const from = this.at < 0 ? places.length : places.indexOf(this.at);
        const at = places[Math.min(Math.max(from + step, 0), places.length - 1)];
        const x = this.plot?.data[0][at];
        this.points = false;
        if (x !== undefined)
            this.plot?.setCursor({ left: this.plot.valToPos(x, "x"), top: 0 });
        this.point(at);
    }

    choose() {
        const result = this.windows[this.at];
        if (result)
            this.select(result.window.id);
    }

    say() {
        const result = this.windows[this.at] ?? this.windows.findLast((each) => each);
        const text = result ? describe(result) : "";
        renew(this.readout, text);
    }

    /** Draws what uPlot has no series for. @param {uPlot} plot */
    mark(plot) {
        const { ctx } = plot;
        ctx.save();
        const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
        ctx.font = `${0.8 * rem * devicePixelRatio}px system-ui, sans-serif`;
        this.markChanges(plot);
        this.windows.forEach((result, i) => {
            const selected = result?.window.id === this.selected;
            if (!result || !(result.infinite || selected) || !isInside(plot, plot.data[0][i]))
                return;
            const x = plot.valToPos(plot.data[0][i], "x", true);
            if (result.infinite)
                this.text(plot, "∞", x, "critical", "center", 1.2 * rem);
            if (selected)
                this.line(plot, x, "focus", []);
        });
        ctx.restore();
    }

    /** @param {uPlot} plot */
    markChanges(plot) {
        let free = Infinity; /* to the left of the words so far, which go from right to left */
        for (const change of this.changes) {
            const seconds = Date.parse(change.at) / 1000;
            if (!isInside(plot, seconds))
                continue;
            const x = plot.valToPos(seconds, "x", true);
            this.line(plot, x, change.to, [3 * devicePixelRatio, 3 * devicePixelRatio]);
            if (free - x < WORD_PX * devicePixelRatio)
                continue;
            free = x;
            const right = x + WORD_PX * devicePixelRatio > plot.bbox.left + plot.bbox.width;
            this.text(plot, ` ${word(change.to)} `, x, change.to, right ? "right" : "left");
        }
    }

    /**
     * @param {uPlot} plot
     * @param {number} x
     * @param {string} colour
     * @param {number[]} dash
     */
    line({ ctx, bbox }, x, colour, dash) {
        ctx.strokeStyle = this.colour(colour);
        ctx.lineWidth = devicePixelRatio;
        ctx.setLineDash(dash);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
    }

    /**
     * @param {uPlot} plot
     * @param {string} text
     * @param {number} x
     * @param {string} colour
     * @param {CanvasTextAlign} align
     * @param {number} [below] pixels below the top
     */
    text({ ctx, bbox }, text, x, colour, align, below = 0) {
        ctx.fillStyle = this.colour(colour);
        ctx.textAlign = align;
        ctx.textBaseline = "top";
        ctx.fillText(text, x, bbox.top + 2 + below * devicePixelRatio);
    }
}

/**
 * @param {uPlot} plot
 * @param {number} seconds
 */
function isInside(plot, seconds) {
    const { min, max } = plot.scales.x;
    return seconds >= (min ?? Infinity) && seconds <= (max ?? -Infinity);
}

/** @param {Result} result */
function describe(result) {
    const { warning, critical } = result.thresholds;
    const kl = result.kl === null && !result.infinite
        ? "no KL: nothing to compare with" : `KL ${number(result.kl)} nats`;
    const noise = result.noise_floor === null ? "" : `noise floor ${nats(result.noise_floor)}; `;
    return `${span(result.window)}${result.window.closed ? "" : " (open)"}: ${kl}, ` +
        `${word(result.verdict)}; ${plural(result.n, "value")}; ${noise}thresholds ` +
        `${number(warning)} and ${number(critical)} nats`;
}

/** @param {Result} result */
function endOf(result) {
    return Date.parse(result.window.end) / 1000;
}

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
 * Columns for uPlot. A gap between windows of time is a point without a window.
 *
 * @param {Result[]} windows
 * @param {Config} config
 */
function pointsOf(windows, config) {
    const seconds = typeof config.window === "object" ? config.window.seconds ?? 0 : 0;
    /** @type {(Result | null)[]} */
    const results = [];
    /** @type {(number | null)[][]} */
    const columns = [[], [], [], [], []];
    const add = (/** @type {(number | null)[]} */ row) =>
        row.forEach((each, i) => columns[i].push(each));
    let before = Infinity;
    const margin = marginOf(windows);
    const beside = (/** @type {Result} */ result, /** @type {number} */ seconds) => {
        const { warning, critical } = result.thresholds;
        results.push(null);
        add([endOf(result) + seconds, null, warning, critical, result.noise_floor]);
    };
    if (windows.length > 0)
        beside(windows[0], -margin);
    for (const result of windows) {
        const end = endOf(result);
        if (seconds > 0 && end - before > 1.5 * seconds) {
            results.push(null);
            add([before + seconds / 2, null, null, null, null]);
        }
        results.push(result);
        add([end, result.kl, result.thresholds.warning, result.thresholds.critical,
             result.noise_floor]);
        before = end;
    }
    if (windows.length > 0)
        beside(windows[windows.length - 1], margin);
    return { points: /** @type {uPlot.AlignedData} */ (columns), results };
}
