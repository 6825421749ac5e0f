/* Reference and current as bars, for one bin or a thousand. */
import { element, fill, freshId, svg } from "./dom.js";
import { binName, edge, isolate, number, percent } from "./format.js";
import { onArrows } from "./keys.js";

/** @typedef {import("./types.js").Bin} Bin */

/** Margins of the plot, pixels. */
const LEFT = 46;
const BELOW = 26;
const ABOVE = 8;

/** Widths in pixels below which a bin's two bars lie over each other, and above which it is named. */
const NARROW = 6;
const NAMED = 44;

/** Width of a character, pixels. */
const CHARACTER = 6.5;

/** @typedef {"reference" | "current"} Part */

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
        this.node = element("div", {}, this.frame, this.readout,
            element("ul", { class: "legend" }, ...parts.map((part) =>
                element("li", {}, element("i", { class: `fill-${part}` }), part))));
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
        const kept = bins.filter((bin) =>
            ["interval", "label"].includes(bin.kind) || bin.reference > 0 || bin.current > 0);
        if (JSON.stringify(kept) === JSON.stringify(this.bins))
            return;
        this.bins = kept;
        this.at = -1;
        this.draw();
    }

    draw() {
        const { clientWidth: width, clientHeight: height } = this.plot;
        if (this.bins.length === 0 || width === 0)
            return;
        const max = Math.max(...this.bins.map((bin) => Math.max(bin.reference, bin.current))) || 1;
        this.step = (width - LEFT) / this.bins.length;
        const y = (/** @type {number} */ part) =>
            height - BELOW - (part / max) * (height - BELOW - ABOVE);
        this.cursor = svg("rect", { class: "hit", y: ABOVE, width: this.step,
                                    height: height - ABOVE - BELOW, visibility: "hidden" });
        this.plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
        fill(this.plot, ...axis(max, width, y), ...this.paths(y), ...this.names(height), this.cursor);
    }

    /** Bars of all bins as one path each. @param {(part: number) => number} y */
    paths(y) {
        const step = this.step ?? 0;
        const apart = step >= NARROW;
        const size = apart ? (step * 0.8) / this.parts.length : step;
        return this.parts.map((part, place) => {
            const shift = apart ? step * 0.1 + place * size : 0;
            const bars = this.bins.map((bin, i) => {
                const x = LEFT + i * step + shift;
                return bin[part] > 0
                    ? `M${x.toFixed(2)} ${y(0)}V${y(bin[part]).toFixed(2)}h${size.toFixed(2)}V${y(0)}z`
                    : "";
            });
            return svg("path", { class: part, d: bars.join(""),
                                 "fill-opacity": apart || place === 0 ? 1 : 0.6 });
        });
    }

    /** Names of bins where there is room. @param {number} height */
    names(height) {
        const step = this.step ?? 0;
        const every = Math.ceil(NAMED / step);
        const room = Math.max(Math.floor((step * every) / CHARACTER), 3);
        return this.bins.map((bin, i) => {
            const name = binName(bin.name);
            const atEdge = bin.kind === "interval" && (every > 1 || [...name].length > room);
            return i % every === 0 && svg("text", {
                x: LEFT + (i + (atEdge ? 0 : 0.5)) * step, y: height - BELOW + 15,
                "text-anchor": atEdge ? "start" : "middle",
            }, shorten(atEdge ? edge(bin.lower ?? 0) : name, room));
        });
    }

    /** @param {PointerEvent} event */
    hover(event) {
        const x = event.clientX - this.plot.getBoundingClientRect().left;
        this.point(Math.floor((x - LEFT) / (this.step ?? 1)));
    }

    /** @param {number} at */
    point(at) {
        this.at = Math.min(Math.max(at, 0), this.bins.length - 1);
        const bin = this.bins[this.at];
        this.cursor?.setAttribute("x", String(LEFT + this.at * (this.step ?? 0)));
        this.cursor?.setAttribute("visibility", "visible");
        const parts = this.parts.map((part) => `${part} ${percent(bin[part])}`).join(", ");
        const share = this.parts.includes("current")
            ? `; contributes ${number(bin.contribution)} ${this.unit}` : "";
        fill(this.readout, `${isolate(binName(bin.name))}: ${parts} of the values${share}`);
    }
}

/**
 * @param {number} max
 * @param {number} width
 * @param {(part: number) => number} y
 */
function axis(max, width, y) {
    return [0, max / 2, max].flatMap((part) => [
        svg("line", { class: "axis", x1: LEFT, x2: width, y1: y(part), y2: y(part) }),
        svg("text", { x: LEFT - 5, y: y(part) + 4, "text-anchor": "end" }, percent(part)),
    ]);
}

/**
 * @param {string} text
 * @param {number} room characters
 */
function shorten(text, room) {
    const characters = [...text];
    return characters.length <= room ? text : `${characters.slice(0, room - 1).join("")}…`;
}
