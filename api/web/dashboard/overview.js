/* The overview: groups, and all monitors, worst first; or one group. */
import { address, call } from "./api.js";
import { curlLines } from "./commands.js";
import { element, fill, renew, visible } from "./dom.js";
import { takeDrops } from "./files.js";
import { GroupPanel } from "./group.js";
import { Cards } from "./groups.js";
import { HealthAlert } from "./health.js";
import { MonitorTable } from "./monitor-table.js";
import { plural } from "./format.js";
import { boundsOf, rangeOf, RangePicker, rangeText } from "./range.js";
import { Refresher } from "./refresh.js";
import { linkTo } from "./row.js";
import { glance, since } from "./sentences.js";
import { isAlarm, LOOKED, shape, STATES, word } from "./states.js";

/**
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./states.js").Look} Look
 */

/** Groups that one response lists at most. */
const LISTED = 1000;

/** Filters of the API that are not the state of the same name: silent ones are only in their own.
 * @type {Record<string, import("./api.js").Query>} */
const FILTERS = {
    silent: { stale: "true" }, ok: { state: "ok", stale: "false" },
    insufficient_data: { state: "insufficient_data", stale: "false" },
};

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
        /** @type {Group[]} */
        this.groups = [];
        this.more = false;
        this.health = new HealthAlert();
        this.refresher = new Refresher({
            load: (signal) => this.load(signal),
            failed: (error) => this.failed(error),
        });
        this.heading = element("h1", {}, "Monitors");
        this.crumbs = element("p", { class: "crumbs", hidden: true }, element("a", { href: "?" }, "Monitors"));
        this.counts = element("span");
        this.worst = element("a", {});
        this.cause = element("span");
        this.glance = element("p", { class: "glance" }, this.counts, this.worst, this.cause);
        this.heard = element("p", { class: "heard", "aria-live": "polite" });
        this.chips = element("div", { class: "chips", role: "group", "aria-label": "States" });
        this.search = element("input", {
            type: "search", size: 30, placeholder: "Search names, labels, owners", "aria-label": "Search names, labels and annotations",
            value: this.query.get("q") ?? "", input: () => this.typed(),
        });
        this.group = element("span");
        this.picker = new RangePicker((changes) => this.go(changes));
        this.changes = element("a", { href: "?events" });
        this.past = element("div", { class: "filters" }, this.picker.node, this.changes);
        this.cards = new Cards();
        this.all = element("p", { class: "quiet" });
        this.panel = new GroupPanel(this.refresher);
        this.table = new MonitorTable((changes) => this.go(changes));
        this.empty = empty();
        this.content = element("div", { class: "content" }, element("p", { class: "loading" }, "Loading …"));
        this.build();
    }

    build() {
        fill(this.main, this.crumbs,
            element("div", { class: "title" },
                this.heading,
                element("a", { class: "button", href: "?add" }, "Add monitors"),
                this.refresher.bar),
            this.health.node, this.refresher.alert, this.content);
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const { group, q, state, sort } = Object.fromEntries(this.query);
        const range = rangeOf(this.query);
        const [groups, changes] = await Promise.all([
            this.loadGroups(group, range, signal),
            range.from && call("GET", address(["events"], { group, ...boundsOf(range, "since"), limit: LISTED }), { signal }),
            this.table.load({ group, q, ...FILTERS[state] ?? { state } }, sort ?? null, signal),
            this.health.load(signal),
        ]);
        this.groups = groups.groups;
        this.more = groups.next !== null;
        this.showPast(range, changes);
        this.show();
    }

    /**
     * @param {string | undefined} group the only one that is wanted
     * @param {import("./range.js").Range} range
     * @param {AbortSignal} signal
     * @returns {Promise<{ groups: Group[], next: string | null }>}
     */
    async loadGroups(group, range, signal) {
        if (group)
            return { groups: [await this.panel.load(group, range, signal)], next: null };
        return call("GET", address(["groups"], { limit: LISTED }), { signal });
    }

    /** @param {import("./api.js").ApiError} error */
    failed(error) {
        this.main.setAttribute("aria-busy", "false");
        this.content.querySelector(".loading")?.remove();
        if (error.status === 404)
            fill(this.content, element("p", { class: "failure" }, "There is no such group. "),
                element("p", {}, element("a", { href: "?" }, "All monitors")));
    }

    show() {
        this.main.setAttribute("aria-busy", "false");
        if (this.groups.length === 0) {
            if (!this.empty.isConnected)
                fill(this.content, this.empty);
            document.title = "Monitors · kldiv";
            return;
        }
        if (!this.table.node.isConnected)
            fill(this.content, this.glance, this.heard, this.past, this.cards.node, this.all, this.panel.node,
                element("div", { class: "filters" }, this.chips, this.search, this.group), this.table.node);
        const one = this.query.get("group");
        this.glance.hidden = one !== null;
        this.table.node.classList.toggle("of-group", one !== null);
        this.showGroup(one);
        this.showGlance();
        this.showChips();
        this.table.show();
        this.cards.node.hidden = this.all.hidden = one !== null || this.groups.length < 2;
        this.panel.node.hidden = one === null;
        if (one === null)
            this.showCards();
    }

    /**
     * How often states changed in the range.
     *
     * @param {import("./range.js").Range} range
     * @param {{ events: import("./types.js").Change[], next: string | null } | null} changes
     */
    showPast(range, changes) {
        const group = this.query.get("group");
        this.picker.show(this.query);
        this.changes.hidden = !changes;
        this.changes.href = `?${new URLSearchParams({ events: "", ...(group && { group }) })}`;
        renew(this.changes, changes && `${changes.next ? "More than " : ""}${plural(changes.events.length, "change")} of state ${rangeText(range)}`);
    }

    /** Number of monitors by what they look like; those that drift and are silent are both. @returns {Record<Look, number>} */
    totals() {
        const sums = { critical: 0, warning: 0, silent: 0, insufficient_data: 0, ok: 0 };
        for (const { states, stale, stale_states: silent } of this.groups) {
            STATES.forEach((state) => (sums[state] += states[state] - (isAlarm(state) ? 0 : silent[state])));
            sums.silent += stale;
        }
        return sums;
    }

    showGlance() {
        const totals = this.totals();
        const worst = this.table.sort ? undefined : this.table.monitors[0];
        const [first] = LOOKED.filter((look) => totals[look] > 0);
        const told = first === "critical" || first === "silent" ? `${totals[first]} ${first} · ` : "";
        const group = this.query.get("group");
        document.title = `${told}${group === null ? "Monitors" : visible(group)} · kldiv`;
        renew(this.heading, group === null ? "Monitors" : element("bdi", {}, group));
        this.crumbs.hidden = group === null;
        const drifts = worst && (worst.stale || isAlarm(worst.state));
        const counts = glance(totals, this.groups.reduce((sum, { monitors }) => sum + monitors, 0), this.more);
        renew(this.heard, counts);
        renew(this.counts, counts, drifts && " Worst: ");
        this.worst.hidden = !drifts;
        this.worst.href = drifts ? linkTo(worst) : "";
        renew(this.worst, ...(drifts ? [element("bdi", {}, worst.group), " / ",
            element("bdi", {}, worst.name)] : []));
        renew(this.cause, drifts && since(worst));
    }

    showCards() {
        const { shown, all } = this.cards.show(this.groups);
        renew(this.all, shown < all &&
            `The worst ${shown} of ${all}${this.more ? "+" : ""} groups; a search finds the others.`);
    }

    /** Shows the group that the list is restricted to. @param {string | null} group */
    showGroup(group) {
        renew(this.group, group && element("a", {
            class: "chip", href: this.link({ group: null }),
            "aria-label": `Group ${group}: show all groups`,
        }, element("bdi", {}, `Group ${group}`), " ✕"));
    }

    showChips() {
        const state = this.query.get("state");
        const totals = this.totals();
        const chips = LOOKED.map((each) => {
            const on = state === each;
            return element("a", {
                class: `chip ${each}`, href: this.link({ state: on ? null : each }),
                "aria-current": on ? "true" : null,
            }, shape(each), `${totals[each]}${this.more ? "+" : ""} ${word(each)}`);
        });
        const focused = [...this.chips.children].indexOf(
            /** @type {Element} */ (document.activeElement));
        fill(this.chips, ...chips);
        if (focused >= 0)
            chips[focused].focus();
    }

    /** Shows the same again, in another zone. */
    redraw() {
        this.table.redraw();
        this.panel.redraw();
        this.cards.shown = "";
        if (this.table.node.isConnected)
            this.show();
    }

    /** @param {URLSearchParams} query */
    update(query) {
        this.query = query;
        this.search.value = query.get("q") ?? "";
        this.refresher.load();
    }

    /** Changes the address, and loads what it now asks for. @param {Record<string, string | null>} changes */
    go(changes) {
        history.replaceState(null, "", this.link(changes));
        this.query = new URLSearchParams(location.search);
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
        this.timer = setTimeout(() => this.go({ q: this.search.value || null }), TYPED_MS);
    }
}

function empty() {
    return element("section", { class: "empty" },
        element("h2", {}, "No monitors yet"),
        element("p", {}, "A monitor compares the values of a column, as they come in, with a " +
            "reference, and says when they drift. Drop a CSV file of normal data anywhere on this page, or ",
            element("a", { class: "button primary", href: "?add&sample" }, "try it with a sample"),
            ", in which two columns drift."),
        element("p", {}, "By two commands: one with a table of reference values, which makes a monitor for each " +
            "column; then one for each batch."),
        ...curlLines());
}

/** @type {import("./start.js").Show} */
export function overview(main, query) {
    const view = new Overview(main, query);
    const drops = takeDrops();
    view.refresher.start();
    return {
        redraw: () => view.redraw(),
        update: (changed) => view.update(changed),
        leave: () => {
            drops.abort();
            clearTimeout(view.timer);
            view.refresher.stop();
        },
    };
}
