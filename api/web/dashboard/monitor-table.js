/* A list of monitors, worst first or sorted by a column; of many only the first are made. */
import { openActions } from "./action-row.js";
import { address, call } from "./api.js";
import { element, renew } from "./dom.js";
import { plural } from "./format.js";
import { age, COLUMNS, head, linkTo, row } from "./row.js";

/**
 * @typedef {import("./types.js").Listed} Listed
 * @typedef {import("./api.js").Query} Query
 */

/** Monitors that are listed at first, and that each "Load more" adds. */
const FEW = 50;

/** Maximum number of monitors that one response lists: those that a sort can know of. */
const LISTED = 1000;

export class MonitorTable {
    /** @param {(changes: Record<string, string | null>) => void} go changes the address, and loads again */
    constructor(go) {
        this.go = go;
        this.shown = FEW;
        /** @type {Listed[]} */
        this.monitors = [];
        this.more = false;
        this.sort = "";
        /** @type {Map<string, { text: string, node: HTMLElement }>} */
        this.rows = new Map();
        this.head = head((column) => this.toggle(column));
        this.body = element("div", { role: "rowgroup" });
        this.table = element("div", { class: "monitors", role: "table", "aria-label": "Monitors" },
            this.head, this.body);
        this.rest = element("p", { class: "rest" });
        this.node = element("div", {}, this.table, this.rest);
    }

    /**
     * Loads what is shown: the worst, or all that one response lists if they are to be sorted.
     *
     * @param {Query} filter
     * @param {string | null} sort a column, after "-" the least first
     * @param {AbortSignal} signal
     */
    async load(filter, sort, signal) {
        const wanted = sort ? LISTED : this.shown;
        /** @type {Listed[]} */
        const monitors = [];
        /** @type {string | null} */
        let cursor = null;
        do {
            const limit = Math.min(wanted - monitors.length, LISTED);
            const response = await call("GET", address(["monitors"], { ...filter, limit, cursor }), { signal });
            monitors.push(...response.monitors);
            cursor = response.next;
        } while (cursor && monitors.length < wanted);
        this.more = cursor !== null;
        this.monitors = monitors;
        this.sort = sort ?? "";
    }

    /** Puts the rows in order; only those that changed are made again. */
    show() {
        const listed = sorted(this.monitors, this.sort).slice(0, this.shown);
        const focused = this.focused();
        const kept = new Map();
        const nodes = listed.map((monitor) => {
            const key = JSON.stringify([monitor.group, monitor.name]);
            const text = JSON.stringify(monitor);
            const known = this.rows.get(key);
            const node = known?.text === text ? known.node : row(monitor, () => this.act(monitor));
            kept.set(key, { text, node });
            return node;
        });
        this.rows = kept;
        place(this.body, nodes);
        for (const moment of this.body.querySelectorAll("time"))
            age(moment);
        if (focused && !this.body.contains(document.activeElement))
            kept.get(focused.key)?.node.querySelector(focused.link)?.focus({ preventScroll: true });
        this.showSort();
        this.showRest(listed.length);
    }

    /** Forgets the rows: times are written in another zone. */
    redraw() {
        this.rows.clear();
    }

    /** The row, and the link in it, that has the focus. */
    focused() {
        const link = document.activeElement;
        for (const [key, { node }] of this.rows)
            if (link && node.contains(link))
                return { key, link: `.${link.className}` };
        return null;
    }

    showSort() {
        for (const header of this.head.querySelectorAll("[data-column]")) {
            const id = header.getAttribute("data-column") ?? "";
            const order = this.sort === id ? "descending" : this.sort === `-${id}` ? "ascending" : "none";
            if (COLUMNS[id].key)
                header.setAttribute("aria-sort", order);
        }
    }

    /** @param {number} shown */
    showRest(shown) {
        const more = this.more || this.monitors.length > shown;
        renew(this.rest, shown === 0 ? "No monitor matches. " : "",
            more && `The ${this.sort ? "first" : "worst"} ${plural(shown, "monitor")} are here. `,
            more && element("button", { type: "button", click: () => this.loadMore() }, "Load more"),
            shown === 0 && element("a", { href: "?" }, "Show all monitors"));
    }

    /** Sorts by a column: the greatest first, then the least, then worst first again. @param {string} column */
    toggle(column) {
        this.go({ sort: this.sort === column ? `-${column}` : this.sort === `-${column}` ? null : column });
    }

    /** @param {Listed} monitor */
    act(monitor) {
        openActions(monitor.group, monitor.name, linkTo(monitor), () => this.go({}));
    }

    loadMore() {
        this.shown += 2 * FEW;
        this.go({});
    }
}

/**
 * @param {Listed[]} monitors
 * @param {string} sort
 */
function sorted(monitors, sort) {
    const key = COLUMNS[sort.replace("-", "")]?.key;
    const sign = sort.startsWith("-") ? 1 : -1;
    const order = (/** @type {number | string} */ a, /** @type {number | string} */ b) =>
        a < b ? -sign : a > b ? sign : 0;
    return key ? [...monitors].sort((a, b) => order(key(a), key(b))) : monitors;
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
