/* Windows as a table, newest first. */
import { element, fill } from "./dom.js";
import { downloadLink } from "./download-link.js";
import { count, number, plural, probability, time } from "./format.js";
import { decidedBy } from "./sentences.js";
import { badge } from "./states.js";
import { term } from "./term.js";

/** @typedef {import("./types.js").Result} Result */

const FEW = 100;

/** Maximum number of windows that one response lists. */
const MAX_LISTED = 1000;

const COLUMNS = [
    ["End", "When the window ended; a button shows its bins"],
    ["Values", "Number of values"],
    ["KL, nats", "Divergence from the reference"],
    ["Noise floor, nats", "KL to expect from so few values without any drift"],
    ["p", "Probability of such a difference without any drift"],
    ["Verdict", "Of this window, and of sums with the windows before"],
    ["State", "Of the monitor after this window: it falls once several windows are good"],
    ["Decided", "The number of rows, or windows before, if these decided"],
];

export class WindowTable {
    /** @param {(id: number) => void} select */
    constructor(select) {
        this.select = select;
        this.limit = FEW;
        this.shown = "";
        /** @type {Result[]} */
        this.windows = [];
        this.body = element("tbody");
        this.more = element("button", { type: "button", click: () => this.showMore() });
        this.links = element("p");
        this.node = element("details", { toggle: () => this.fill() },
            element("summary", {}, "Windows as a table, and as files"), this.links,
            element("div", {
                class: "scroll", tabindex: 0, role: "region", "aria-label": "Windows",
            }, element("table", { class: "windows" }, element("thead", {}, element("tr", {},
                ...COLUMNS.map(([name, means]) => element("th", { scope: "col" }, term(name, means))))),
            this.body)),
            this.more);
    }

    /**
     * @param {Result[]} windows oldest first
     * @param {number | null} selected
     * @param {string[]} path
     */
    show(windows, selected, path) {
        const last = windows[windows.length - 1];
        const text = JSON.stringify([windows[0]?.window, windows.length, last, selected]);
        if (text === this.shown)
            return;
        this.shown = text;
        this.windows = windows;
        this.selected = selected;
        const all = [...path, "windows"];
        fill(this.links, `Newest ${count(MAX_LISTED)} as `,
            downloadLink("JSON", all, { limit: MAX_LISTED }, `${path[2]}.json`), "; ",
            downloadLink("this window", [...all, String(selected ?? "latest")], {},
                `${path[2]}-window.json`), " as JSON.");
        this.fill();
    }

    fill() {
        if (!this.node.open)
            return;
        const focused = [...this.body.querySelectorAll("button")].findIndex((button) =>
            button === document.activeElement);
        const newest = this.windows.slice(-this.limit).reverse();
        fill(this.body, ...newest.map((result) => this.row(result)));
        if (focused >= 0)
            this.body.querySelectorAll("button")[focused]?.focus();
        this.more.hidden = this.windows.length <= this.limit;
        this.more.textContent = `Show more of ${plural(this.windows.length, "window")}`;
    }

    showMore() {
        this.limit += 10 * FEW;
        this.fill();
    }

    /** @param {Result} result */
    row(result) {
        const { id, end, closed } = result.window;
        const known = result.kl !== null || result.infinite;
        return element("tr", { "aria-current": id === this.selected ? "true" : null },
            element("td", {}, element("button", { type: "button", click: () => this.select(id) },
                `${time(end)}${closed ? "" : " (open)"}`)),
            element("td", {}, count(result.n)),
            element("td", {}, known ? number(result.kl) : "–"),
            element("td", {}, result.noise_floor === null ? "–" : number(result.noise_floor)),
            element("td", {}, result.g_test ? probability(result.g_test.p_value) : "–"),
            element("td", {}, badge(result.verdict)),
            element("td", {}, badge(result.state)),
            element("td", { class: "left" }, decidedBy(result)));
    }
}
