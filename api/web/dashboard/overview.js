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

/** Maximum number of monitors that one response lists. */
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
        /** @type {{ monitors: Listed[], more: boolean }} */
        this.wanted = { monitors: [], more: false };
        /** @type {Map<string, { text: string, node: HTMLElement }>} */
        this.rows = new Map();
        this.refresher = new Refresher({
            load: (signal) => this.load(signal),
            failed: () => {
                main.setAttribute("aria-busy", "false");
                this.content.querySelector(".loading")?.remove();
            },
        });
        this.counts = element("span");
        this.worst = element("a", {});
        this.cause = element("span");
        this.glance = element("p", { class: "glance" }, this.counts, this.worst, this.cause);
        this.empty = empty();
        this.heard = element("p", { class: "heard", "aria-live": "polite" });
        this.chips = element("div", { class: "chips", role: "group", "aria-label": "States" });
        this.search = element("input", {
            type: "search", placeholder: "Search names", "aria-label": "Search names",
            value: this.query.get("q") ?? "", input: () => this.typed(),
        });
        this.group = element("span");
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
        const all = await this.read(null, signal);
        const state = this.query.get("state");
        this.more = all.more;
        this.monitors = all.monitors;
        this.wanted = all.more && state ? await this.read(state, signal) : all;
        this.show();
    }

    /**
     * @param {string | null} state null for all
     * @param {AbortSignal} signal
     */
    async read(state, signal) {
        const { group, q } = Object.fromEntries(this.query);
        /** @type {Listed[]} */
        const monitors = [];
        /** @type {string | null} */
        let cursor = null;
        for (let page = 0; page === 0 || (cursor && page < this.pages); page++) {
            const url = address(["monitors"], { limit: LIMIT, group, q, state, cursor });
            const response = await call("GET", url, { signal });
            monitors.push(...response.monitors);
            cursor = response.next;
        }
        return { monitors, more: cursor !== null };
    }

    show() {
        const filtered = this.query.get("group") || this.query.get("q");
        this.main.setAttribute("aria-busy", "false");
        if (this.monitors.length === 0 && !filtered) {
            if (!this.empty.isConnected)
                fill(this.content, this.empty);
            return;
        }
        if (!this.table.isConnected)
            fill(this.content, this.glance, this.heard, element("div", { class: "filters" },
                this.chips, this.search, this.group), this.table, this.rest);
        this.showGroup();
        this.showGlance();
        this.showChips();
        this.showRows();
    }

    showGlance() {
        const [worst] = this.monitors;
        const critical = this.monitors.filter(({ state }) => state === "critical").length;
        document.title = `${critical > 0 ? `${critical} critical · ` : ""}Monitors · kldiv`;
        const drifts = worst?.state === "critical" || worst?.state === "warning";
        const counts = glance(this.monitors, this.more);
        renew(this.heard, counts);
        renew(this.counts, counts, drifts && " Worst: ");
        this.worst.hidden = !drifts;
        this.worst.href = drifts ? addressOf(worst) : "";
        renew(this.worst, ...(drifts ? [element("bdi", {}, worst.group), " / ",
            element("bdi", {}, worst.name)] : []));
        renew(this.cause, drifts && since(worst));
    }

    /** Shows the group that the list is restricted to. */
    showGroup() {
        const group = this.query.get("group");
        renew(this.group, group && element("a", {
            class: "chip", href: this.link({ group: null }),
            "aria-label": `Group ${group}: show all groups`,
        }, element("bdi", {}, `Group ${group}`), " ✕"));
    }

    showChips() {
        const state = this.query.get("state");
        const chips = STATES.map((each) => {
            const n = this.monitors.filter((monitor) => monitor.state === each).length;
            const on = state === each;
            return element("a", {
                class: `chip ${each}`, href: this.link({ state: on ? null : each }),
                "aria-current": on ? "true" : null,
            }, shape(each), `${n}${this.more ? "+" : ""} ${word(each)}`);
        });
        const focused = [...this.chips.children].indexOf(
            /** @type {Element} */ (document.activeElement));
        fill(this.chips, ...chips);
        if (focused >= 0)
            chips[focused].focus();
    }

    /** Puts the rows in order; only those that changed are made again. */
    showRows() {
        const state = this.query.get("state");
        const wanted = this.wanted.monitors.filter((each) => !state || each.state === state);
        const focused = this.focusedRow();
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
        if (focused && !this.body.contains(document.activeElement))
            kept.get(focused.key)?.node.querySelector(focused.link)?.focus({ preventScroll: true });
        this.showRest(wanted.length);
    }

    /** The row, and the link in it, that has the focus. */
    focusedRow() {
        const link = document.activeElement;
        for (const [key, { node }] of this.rows)
            if (link && node.contains(link))
                return { key, link: `.${link.className}` };
        return null;
    }

    /** @param {number} shown */
    showRest(shown) {
        if (this.wanted.more)
            renew(this.rest, `The worst ${plural(shown, "monitor")} are here. `,
                element("button", { type: "button", click: () => this.loadMore() }, "Load more"));
        else
            renew(this.rest,
                shown === 0 && element("a", { href: "?" }, "Show all monitors"));
    }

    /** Shows the same again, in another zone. */
    redraw() {
        this.rows.clear();
        if (this.table.isConnected)
            this.show();
    }

    /** @param {URLSearchParams} query */
    update(query) {
        this.query = query;
        this.pages = 1;
        this.search.value = query.get("q") ?? "";
        if (this.table.isConnected)
            this.show();
        this.refresher.load();
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
function addressOf({ group, name }) {
    return `?${new URLSearchParams({ group, monitor: name })}`;
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
    return {
        redraw: () => view.redraw(),
        update: (changed) => view.update(changed),
        leave: () => {
            clearTimeout(view.timer);
            view.refresher.stop();
        },
    };
}
