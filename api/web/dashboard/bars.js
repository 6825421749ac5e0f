/* Reference and current as bars, for one bin or a thousand. */
import { element, fill, freshId, renew, svg } from "./dom.js";
import { binTitle, isolate, number, percent, shorten } from "./format.js";
import { onArrows } from "./keys.js";
import { drawn, layoutOf } from "./layout.js";

/**
 * @typedef {import("./types.js").Bin} Bin
 * @typedef {import("./layout.js").Part} Part
 * @typedef {import("./layout.js").Layout} Layout
 */

/** Margins of the plot, pixels; the left one holds marks. */
const LEFT = 46;
const BELOW = 26;
const ABOVE = 8;

/** Width in pixels below which a bin's two bars lie over each other. */
const NARROW = 6;

/** Width of a character, pixels. */
const CHARACTER = 6.5;

export class BinChart {
    /** @param {Part[]} [parts] */
    constructor(parts = ["reference", "current"]) {
        this.parts = parts;
        /** @type {Bin[]} */
        this.bins = [];
        this.unit = "nats";
        this.at = -1;
        const readout = freshId();
        this.readout = element("p", { class: "readout", id: readout, "aria-live": "polite" });
        this.plot = svg("svg", { class: "bars", "aria-hidden": "true" });
        this.frame = element("div", {
            tabindex: 0, role: "group", "aria-describedby": readout,
            "aria-label": `${parts.join(" and ")}, bin by bin. Left and right go from bin to bin. ` +
                "The table below has the same numbers.",
        }, this.plot);
        this.plot.addEventListener("pointermove", (event) => this.hover(event));
        onArrows(this.frame, (step) => this.point(this.at + step));
        this.note = element("li");
        this.names = new Map(parts.map((part) => [part, element("span", {}, part)]));
        this.node = element("div", {}, this.frame, this.readout,
            element("ul", { class: "legend" }, ...parts.map((part) =>
                element("li", {}, element("i", { class: `fill-${part}` }), this.names.get(part))), this.note));
        this.resized = new ResizeObserver(() => this.draw());
        this.resized.observe(this.frame);
    }

    stop() {
        this.resized.disconnect();
    }

    /**
     * @param {Bin[]} bins
     * @param {string} [unit] of contributions
     */
    show(bins, unit = "nats") {
        this.unit = unit;
        const kept = drawn(bins);
        if (JSON.stringify(kept) === JSON.stringify(this.bins))
            return;
        this.bins = kept;
        this.at = -1;
        this.draw();
    }

    /** Says what a part is. @param {Part} part @param {string} name */
    name(part, name) {
        renew(/** @type {Element} */ (this.names.get(part)), name);
    }

    draw() {
        const { clientWidth: width, clientHeight: height } = this.plot;
        if (this.bins.length === 0 || width === 0)
            return;
        const layout = layoutOf(this.bins, this.parts);
        const left = layout.marks.length > 0 ? LEFT : 0;
        const x = (/** @type {number} */ part) => left + part * (width - left);
        const y = (/** @type {number} */ part) => height - BELOW - part * (height - BELOW - ABOVE);
        this.layout = layout;
        this.x = x;
        this.cursor = svg("rect", { class: "hit", y: ABOVE, height: height - ABOVE - BELOW,
                                    visibility: "hidden" });
        this.note.textContent = layout.note;
        this.plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
        fill(this.plot, ...marks(layout, width, y), ...this.paths(layout, x, y),
            ...names(layout, x, height), this.cursor);
    }

    /**
     * Bars of all bins as one path for each part.
     *
     * @param {Layout} layout
     * @param {(part: number) => number} x
     * @param {(part: number) => number} y
     */
    paths(layout, x, y) {
        const narrow = x(layout.places[0].width) - x(0) < NARROW;
        const overlaid = layout.overlaid || narrow;
        return this.parts.map((part, k) => {
            const bars = layout.places.map(({ x: from, width }, i) => {
                const own = overlaid ? width : (width * 0.8) / this.parts.length;
                const start = overlaid ? from : from + width * 0.1 + k * own;
                return this.bins[i][part] > 0
                    ? `M${x(start).toFixed(1)} ${y(0)}V${y(layout.height(i, part)).toFixed(1)}` +
                      `H${x(start + own).toFixed(1)}V${y(0)}z` : "";
            });
            return svg("path", { class: `${part}${overlaid && k > 0 ? " over" : ""}`, d: bars.join("") });
        });
    }

    /** @param {PointerEvent} event */
    hover(event) {
        const at = event.clientX - this.plot.getBoundingClientRect().left;
        const { layout, x } = this;
        const found = layout?.places.findIndex(({ x: from, width }) => x && at < x(from + width)) ?? -1;
        this.point(found < 0 ? this.bins.length - 1 : found);
    }

    /** @param {number} at */
    point(at) {
        this.at = Math.min(Math.max(at, 0), this.bins.length - 1);
        const bin = this.bins[this.at];
        const place = this.layout?.places[this.at];
        if (place && this.x) {
            this.cursor?.setAttribute("x", String(this.x(place.x)));
            this.cursor?.setAttribute("width", String(this.x(place.x + place.width) - this.x(place.x)));
            this.cursor?.setAttribute("visibility", "visible");
        }
        const parts = this.parts.map((part) => `${part} ${percent(bin[part])}`).join(", ");
        const share = this.parts.includes("current")
            ? `; contributes ${number(bin.contribution)} ${this.unit}` : "";
        fill(this.readout, `${isolate(binTitle(bin))}: ${parts} of the values${share}`);
    }
}

/**
 * @param {Layout} layout
 * @param {number} width
 * @param {(part: number) => number} y
 */
function marks(layout, width, y) {
    const left = layout.marks.length > 0 ? LEFT : 0;
    const base = svg("line", { class: "axis", x1: left, x2: width, y1: y(0), y2: y(0) });
    return [base, ...layout.marks.flatMap(({ y: part, text }) => [
        svg("line", { class: "axis", x1: left, x2: width, y1: y(part), y2: y(part) }),
        svg("text", { x: left - 5, y: y(part) + 4, "text-anchor": "end" }, text),
    ])];
}

/**
 * @param {Layout} layout
 * @param {(part: number) => number} x
 * @param {number} height
 */
function names(layout, x, height) {
    return layout.names.map(({ x: at, text, room, anchor }) => svg("text", {
        x: x(at), y: height - BELOW + 15, "text-anchor": anchor,
    }, shorten(text, Math.max(Math.floor((x(room) - x(0)) / CHARACTER), 4))));
}
