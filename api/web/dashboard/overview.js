/* The overview: all monitors, worst first. */
import { address, call } from "./api.js";
import { curlLines } from "./commands.js";
import { element, fill, renew } from "./dom.js";
import { plural } from "./format.js";
import { Refresher } from "./refresh.js";
import { age, head, row } from "./row.js";
import { glance, since } from "./sentences.js";
import { shape, STATES, word } from "./states.js";

/**
 * @typedef {import("./types.js").Listed} Listed
 * @typedef {import("./states.js").State} State
 */

/** The most monitors that one answer lists. */
const LIMIT = 1000;

/** Milliseconds without a key before a search begins. */
const TYPED_MS = 250;

class Overview {
    /**
     * @param {HTMLElement} main
     * @param {URLSearchParams} query
     */
    constructor(main, query) {
        this.main = main;
        this.query = query;
        /** @type {Listed[]} */
        this.monitors = [];
        this.pages = 1;
        this.more = false;
        /** @type {Map<string, { text: string, node: HTMLElement }>} */
        this.rows = new Map();
        this.refresher = new Refresher({
            load: (signal) => this.load(signal),
            failed: () => main.setAttribute("aria-busy", "false"),
        });
        this.glance = element("p", { class: "glance" });
        this.heard = element("p", { class: "heard", "aria-live": "polite" });
        this.chips = element("div", { class: "chips", role: "group", "aria-label": "States" });
        this.search = element("input", {
            type: "search", placeholder: "Search names", "aria-label": "Search names",
            value: this.query.get("q") ?? "", input: () => this.typed(),
        });
        this.body = element("div", { role: "rowgroup" });
        this.table = element("div", { class: "monitors", role: "table", "aria-label": "Monitors" },
            head(), this.body);
        this.rest = element("p", { class: "rest" });
        this.content = element("div", {}, element("p", { class: "loading" }, "Loading …"));
        this.build();
    }

    build() {
        fill(this.main,
            element("div", { class: "title" },
                element("h1", {}, "Monitors"),
                element("a", { class: "button", href: "?add" }, "Add monitors"),
                this.refresher.bar),
            this.refresher.alert, this.content);
    }

    /** Loads as many pages as are shown. @param {AbortSignal} signal */
    async load(signal) {
        /** @type {Listed[]} */
        const monitors = [];
        /** @type {string | null} */
        let cursor = null;
        for (let page = 0; page === 0 || (cursor && page < this.pages); page++) {
            const answer = await call("GET", address(["monitors"], {
                limit: LIMIT, group: this.query.get("group"), q: this.query.get("q"), cursor,
            }), { signal });
            monitors.push(...answer.monitors);
            cursor = answer.next;
        }
        this.more = cursor !== null;
        this.monitors = monitors;
        this.show();
    }

    show() {
        const filtered = this.query.get("group") || this.query.get("q");
        this.main.setAttribute("aria-busy", "false");
        if (this.monitors.length === 0 && !filtered) {
            fill(this.content, empty());
            return;
        }
        if (!this.table.isConnected)
            fill(this.content, this.glance, this.heard, this.filters(), this.table, this.rest);
        this.showGlance();
        this.showChips();
        this.showRows();
    }

    showGlance() {
        const [worst] = this.monitors;
        const critical = this.monitors.filter(({ state }) => state === "critical").length;
        document.title = `${critical > 0 ? `${critical} critical · ` : ""}Monitors · kldiv`;
        const drifts = worst?.state === "critical" || worst?.state === "warning";
        renew(this.heard, glance(this.monitors));
        renew(this.glance, glance(this.monitors), drifts && " Worst: ", drifts && link(worst),
            drifts && since(worst));
    }

    filters() {
        const group = this.query.get("group");
        return element("div", { class: "filters" }, this.chips, this.search,
            group && element("a", { class: "chip", href: this.link({ group: null }),
                                    "aria-label": `Group ${group}: show all groups` },
                element("bdi", {}, `Group ${group}`), " ✕"));
    }

    showChips() {
        const state = this.query.get("state");
        const chips = STATES.map((each) => {
            const n = this.monitors.filter((monitor) => monitor.state === each).length;
            const on = state === each;
            return element("a", {
                class: `chip ${each}`, href: this.link({ state: on ? null : each }),
                "aria-current": on ? "true" : null,
            }, shape(each), `${n} ${word(each)}`);
        });
        const focused = [...this.chips.children].indexOf(
            /** @type {Element} */ (document.activeElement));
        fill(this.chips, ...chips);
        if (focused >= 0)
            chips[focused].focus();
    }

    /** Puts the rows in order; only those that changed are made anew. */
    showRows() {
        const state = this.query.get("state");
        const wanted = this.monitors.filter((monitor) => !state || monitor.state === state);
        const kept = new Map();
        const nodes = wanted.map((monitor) => {
            const key = JSON.stringify([monitor.group, monitor.name]);
            const text = JSON.stringify(monitor);
            const known = this.rows.get(key);
            const node = known?.text === text ? known.node : row(monitor);
            kept.set(key, { text, node });
            return node;
        });
        this.rows = kept;
        place(this.body, nodes);
        for (const moment of this.body.querySelectorAll("time"))
            age(moment);
        fill(this.rest, ...this.remark(wanted.length));
    }

    /** @param {number} shown */
    remark(shown) {
        if (this.more)
            return [`The worst ${plural(this.monitors.length, "monitor")} are here. `,
                element("button", { type: "button", click: () => this.loadMore() }, "Load more")];
        return [shown === 0 ? "No monitor is like that. " : "",
            shown === 0 && element("a", { href: "?" }, "Show all")];
    }

    loadMore() {
        this.pages++;
        this.refresher.load();
    }

    /**
     * Address of this view with other filters; null leaves one out.
     *
     * @param {{ [name: string]: string | null }} changes
     */
    link(changes) {
        const query = new URLSearchParams(this.query);
        for (const [name, value] of Object.entries(changes))
            if (value === null)
                query.delete(name);
            else
                query.set(name, value);
        return `?${query}`;
    }

    typed() {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
            history.replaceState(null, "", this.link({ q: this.search.value || null }));
            this.query = new URLSearchParams(location.search);
            this.refresher.load();
        }, TYPED_MS);
    }
}

/** @param {Listed} monitor */
function link({ group, name }) {
    return element("a", { href: `?${new URLSearchParams({ group, monitor: name })}` },
        element("bdi", {}, group), " / ", element("bdi", {}, name));
}

/**
 * Gives a parent these children, in this order, and moves as few as it can.
 *
 * @param {Element} parent
 * @param {Element[]} nodes
 */
function place(parent, nodes) {
    let at = parent.firstElementChild;
    const wanted = new Set(nodes);
    for (const node of [...parent.children])
        if (!wanted.has(node)) {
            if (node === at)
                at = at.nextElementSibling;
            node.remove();
        }
    for (const node of nodes) {
        if (node === at)
            at = at.nextElementSibling;
        else
            parent.insertBefore(node, at);
    }
}

function empty() {
    return element("section", { class: "empty" },
        element("h2", {}, "No monitors yet"),
        element("p", {}, "A monitor compares the values of a column, as they come in, with a " +
            "reference, and says when they drift. Two commands are enough: one with a table of " +
            "reference values, which makes a monitor for each column; then one for each batch."),
        ...curlLines(),
        element("p", {}, "Or ", element("a", { href: "?add" }, "drop a CSV file here"), "."));
}

/** @type {import("./start.js").Show} */
export function overview(main, query) {
    const view = new Overview(main, query);
    view.refresher.start();
    return () => view.refresher.stop();
}
