/* Windows as a table, newest first. */
import { address, download } from "./api.js";
import { element, fill } from "./dom.js";
import { count, number, plural, probability, time } from "./format.js";
import { token } from "./token.js";
import { badge } from "./states.js";

/** @typedef {import("./types.js").Result} Result */

const FEW = 100;
const COLUMNS = ["End", "Values", "KL, nats", "Noise floor", "p", "Verdict"];

export class WindowTable {
    /** @param {(id: number) => void} select */
    constructor(select) {
        this.select = select;
        this.most = FEW;
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
            }, element("table", {}, element("thead", {}, element("tr", {},
                ...COLUMNS.map((name) => element("th", { scope: "col" }, name)))), this.body)),
            this.more);
    }

    /**
     * @param {Result[]} windows oldest first
     * @param {number | null} selected
     * @param {string[]} path
     */
    show(windows, selected, path) {
        const text = JSON.stringify([windows, selected]);
        if (text === this.shown)
            return;
        this.shown = text;
        this.windows = windows;
        this.selected = selected;
        fill(this.links, saved("CSV", [...path, "windows"], { format: "csv", limit: 1000 },
            `${path[2]}.csv`), " · ", saved("JSON", [...path, "windows"], { limit: 1000 },
            `${path[2]}.json`), " · ", saved("this window", [...path, "windows",
                String(selected ?? "latest")], {}, `${path[2]}-window.json`));
        this.fill();
    }

    fill() {
        if (!this.node.open)
            return;
        const focused = [...this.body.querySelectorAll("button")].findIndex((button) =>
            button === document.activeElement);
        const newest = this.windows.slice(-this.most).reverse();
        fill(this.body, ...newest.map((result) => this.row(result)));
        if (focused >= 0)
            this.body.querySelectorAll("button")[focused]?.focus();
        this.more.hidden = this.windows.length <= this.most;
        this.more.textContent = `Show more of ${plural(this.windows.length, "window")}`;
    }

    showMore() {
        this.most += 10 * FEW;
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
            element("td", {}, badge(result.verdict)));
    }
}

/**
 * A link to a file of the API; with a token, a call that can send it.
 *
 * @param {string} text
 * @param {string[]} path
 * @param {import("./api.js").Query} query
 * @param {string} name
 */
function saved(text, path, query, name) {
    const url = address(path, query);
    return element("a", {
        href: url, download: name,
        click: (/** @type {Event} */ event) => {
            if (!token())
                return;
            event.preventDefault();
            download(url, name);
        },
    }, text);
}
