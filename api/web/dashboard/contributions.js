/* Bins by what they contribute to KL, as a table. */
import { element, fill } from "./dom.js";
import { binTitle, number, percent, plural } from "./format.js";
import { term } from "./term.js";

/**
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Bin} Bin
 */

/** Rows that are shown at first. */
const FEW = 10;

const COLUMNS = [
    ["Bin", ""],
    ["Share of KL", "Contribution, of KL"],
    ["Reference", "Part of the reference's values in this bin"],
    ["Current", "Part of the current values in this bin"],
    ["Contribution", "In the unit of KL, to which it sums: p log(p/q) − p + q, p current, " +
        "q reference, both smoothed"],
    ["Cumulative", "Share of this bin and those above"],
];

/** @param {Bin} bin */
function size(bin) {
    return bin.contribution === null ? Infinity : bin.contribution;
}

/**
 * @param {Bin} bin
 * @param {number} cumulative
 */
function row(bin, cumulative) {
    const infinite = bin.contribution === null;
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--value", `${100 * (infinite ? 1 : bin.share ?? 0)}%`);
    return element("tr", {},
        element("th", { scope: "row", title: bin.name }, element("bdi", {}, binTitle(bin))),
        element("td", { class: "share" }, bar,
            element("span", {}, bin.share === null ? "–" : percent(bin.share))),
        element("td", {}, percent(bin.reference)),
        element("td", {}, percent(bin.current)),
        element("td", { class: "contribution" }, number(bin.contribution)),
        element("td", { class: "cumulative" }, bin.share === null ? "–" : percent(Math.min(cumulative, 1))));
}

export class Contributions {
    constructor() {
        this.limit = FEW;
        /** @type {Bin[]} */
        this.bins = [];
        this.body = element("tbody");
        this.all = element("button", { type: "button", click: () => this.showAll() });
        this.node = element("section", { class: "panel" },
            element("h2", {}, "Contributions to KL"),
            element("div", {
                class: "scroll", tabindex: 0, role: "region", "aria-label": "Contributions",
            }, element("table", {},
                element("thead", {}, element("tr", {}, ...COLUMNS.map(([name, title]) =>
                    element("th", { scope: "col", class: name.toLowerCase() }, title ? term(name, title) : name)))), this.body)),
            element("div", { class: "buttons" }, this.all));
    }

    /** @param {Pick<Result, "bins">} result */
    show(result) {
        this.bins = [...(result.bins ?? [])].sort((a, b) => size(b) - size(a));
        this.fill();
    }

    fill() {
        let sum = 0;
        fill(this.body,
            ...this.bins.slice(0, this.limit).map((bin) => row(bin, (sum += bin.share ?? 0))));
        this.all.hidden = this.bins.length <= this.limit;
        this.all.textContent = `All ${plural(this.bins.length, "bin")}`;
    }

    showAll() {
        this.limit = Infinity;
        this.fill();
    }
}
