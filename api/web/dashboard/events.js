/* Changes of state of all monitors, newest first. */
import { address, call } from "./api.js";
import { element, fill } from "./dom.js";
import { ago, sentenceText, number, plural, time } from "./format.js";
import { HealthAlert } from "./health.js";
import { Notifications } from "./notifications.js";
import { boundsOf, changeAddress, rangeOf, RangePicker } from "./range.js";
import { Refresher } from "./refresh.js";
import { isOfWindow, rises } from "./spans.js";
import { badge } from "./states.js";

/**
 * @typedef {import("./types.js").Event} Event
 * @typedef {import("./types.js").State} State
 */

/** Changes that are listed at first, and that each "Load more" adds. */
const FEW = 100;

/** States by which changes are chosen. */
const STATES = [["", "any state"], ["critical", "critical"], ["warning", "warning"], ["ok", "ok"], ["stale", "silent"]];

class Events {
    /**
     * @param {HTMLElement} main
     * @param {URLSearchParams} query
     */
    constructor(main, query) {
        this.main = main;
        this.query = query;
        this.limit = FEW;
        this.shown = "";
        /** @type {Map<string, Promise<string>>} sentences of windows */
        this.causes = new Map();
        this.health = new HealthAlert();
        this.notifications = new Notifications();
        this.refresher = new Refresher({
            load: (signal) => this.load(signal),
            failed: () => main.setAttribute("aria-busy", "false"),
        });
        /** @type {{ events: Event[], next: string | null }} */
        this.loaded = { events: [], next: null };
        /** @type {WeakMap<Element, () => void>} what an entry does when it is first seen */
        this.waiting = new WeakMap();
        this.seen = new IntersectionObserver((entries) => {
            for (const { isIntersecting, target } of entries)
                if (isIntersecting) {
                    this.seen.unobserve(target);
                    this.waiting.get(target)?.();
                }
        });
        this.search = element("input", { type: "search", size: 24, placeholder: "Group or monitor", "aria-label": "Group or monitor",
                                         value: query.get("q") ?? "", input: () => this.choose({ q: this.search.value || null }) });
        this.list = element("div");
        this.state = element("select", { id: "to", change: () => this.choose({ to_state: this.state.value || null }) },
            ...STATES.map(([value, text]) => element("option", { value }, text)));
        this.picker = new RangePicker((changes) => this.go(changes));
        const group = query.get("group");
        fill(main,
            element("p", { class: "crumbs" }, element("a", { href: "?" }, "Monitors"), group && " › ",
                group && element("a", { href: `?${new URLSearchParams({ group })}` }, element("bdi", {}, group))),
            element("div", { class: "title" }, element("h1", {}, "Events: changes of state"), this.refresher.bar),
            this.health.node, this.refresher.alert, this.notifications.node,
            element("div", { class: "filters" }, this.picker.node,
                element("label", { for: "to" }, "Became "), this.state, this.search),
            element("section", { class: "panel", "aria-label": "Changes" },
                element("p", { class: "quiet" }, "Times are those at which windows ended, or a silence began or ended."), this.list));
        document.title = "Events · kldiv";
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const group = this.query.get("group");
        const [response] = await Promise.all([
            call("GET", address(["events"], { group, ...boundsOf(rangeOf(this.query), "since"), limit: this.limit }), { signal }),
            this.health.load(signal), this.notifications.load(signal),
        ]);
        this.main.setAttribute("aria-busy", "false");
        this.picker.show(this.query);
        this.state.value = this.query.get("to_state") ?? "";
        this.search.value = this.query.get("q") ?? "";
        this.loaded = response;
        this.showChosen();
    }

    /** Shows those of the loaded changes that the reader wants. */
    showChosen() {
        const { value: wanted } = this.state;
        const text = this.search.value.toLowerCase();
        const has = (/** @type {Event} */ { group = "", name = "" }) => `${group} / ${name}`.toLowerCase().includes(text);
        this.show(this.loaded.events.filter((each) => (!wanted || each.to === wanted) && has(each)), this.loaded.next !== null);
    }

    /** @param {Record<string, string | null>} changes of the address, by which loaded changes are chosen */
    choose(changes) {
        changeAddress(this.query, changes);
        this.showChosen();
    }

    /**
     * @param {Event[]} changes
     * @param {boolean} more
     */
    show(changes, more) {
        const text = JSON.stringify([changes, more, this.state.value, this.search.value]);
        if (text === this.shown)
            return;
        this.shown = text;
        this.seen.disconnect();
        fill(this.list,
            changes.length === 0 ? element("p", { class: "quiet" }, more ? "None of the changes that are loaded is such a one."
                : `No ${this.search.value ? "such monitor" : "monitor"} ${this.state.value ? "has come to this state" : "has changed its state"} in this time.`)
                : element("ol", { class: "feed" }, ...together(changes).map((some) => this.entry(some))),
            more && element("button", { type: "button", click: () => this.loadMore() }, "Load more"));
    }

    /**
     * Why a state rose, read once; "" where the window is kept no more.
     *
     * @param {Event} change
     */
    cause({ group = "", name = "", window, at }) {
        const url = address(["monitors", group, name, "windows", String(window)]);
        const key = `${url.href} ${at}`;
        const cause = this.causes.get(key) ?? call("GET", url).then(({ sentence }) => sentence ?? "", (error) => {
            if (error.status !== 404)
                this.causes.delete(key);
            return "";
        });
        this.causes.set(key, cause);
        return cause;
    }

    /**
     * An entry; why a state rose is read once the entry is seen.
     *
     * @param {Event[]} changes of one group and its segments, at the same time
     */
    entry(changes) {
        const why = element("span", { class: "cause" });
        const node = lineOf(changes, why);
        const change = toldOf(changes);
        if (isOfWindow(change) && rises(change)) {
            fill(why, "\u00a0"); /* the room of the cause */
            this.waiting.set(node, () => this.cause(change).then((sentence) => explain(node, why, changes, sentence)));
            this.seen.observe(node);
        }
        return node;
    }

    /** @param {Record<string, string | null>} changes of the address */
    go(changes) {
        changeAddress(this.query, changes);
        this.refresher.load();
    }

    loadMore() {
        this.limit = Math.min(this.limit + 3 * FEW, 1000);
        this.refresher.load();
    }

    redraw() {
        this.shown = "";
        this.refresher.load();
    }
}

/** How a state of an event looks. @param {State | "stale"} state */
function looked(state) {
    return state === "stale" ? "silent" : state;
}

/** The group whose segment a group is, or the group itself. @param {Event} change */
function baseOf({ group = "" }) {
    return group.replace(/^(.+?)\[[^[=]+=.*\]$/, "$1");
}

/**
 * Changes that several monitors of a group and of its segments made at the same time, such as when a batch is missing, are one entry.
 *
 * @param {Event[]} changes newest first
 * @returns {Event[][]}
 */
function together(changes) {
    /** @type {Map<string, Event[]>} */
    const entries = new Map();
    for (const change of changes) {
        const { at, from, to } = change;
        const key = JSON.stringify([baseOf(change), at, from, to]);
        const entry = entries.get(key) ?? [];
        entries.set(key, entry);
        entry.push(change);
    }
    return [...entries.values()];
}

/** The change whose cause is told: of the group itself rather than of a segment. @param {Event[]} changes */
function toldOf(changes) {
    return changes.find((change) => change.group === baseOf(change)) ?? changes[0];
}

/** The page of the monitor, with the window that changed its state. @param {Event} change */
function linkOf({ group = "", name = "", window }) {
    return `?${new URLSearchParams({ group, monitor: name, ...(window !== null && { window: String(window) }) })}`;
}

/** @param {Event} change */
function klOf({ kl, infinite }) {
    return kl !== null || infinite ? `KL ${number(infinite ? null : kl)} nats` : "";
}

/** A monitor's name, with that of its segment. @param {Event} change @param {string} group whose segment it may be of */
function nameIn({ group: of = "", name = "" }, group) {
    return `${of.slice(group.length)} ${name}`.trim();
}

/** The monitors of an entry, each with its KL. @param {Event[]} changes */
function monitorsOf(changes) {
    const groups = new Set(changes.map(({ group = "" }) => group));
    const base = baseOf(changes[0]);
    const [only] = groups.size === 1 ? groups : [base];
    return element("details", {},
        element("summary", {}, element("bdi", {}, only), ` / ${plural(changes.length, "monitor")}`,
            groups.size > 1 && (groups.has(base) ? ", also of segments" : ", of segments")),
        element("ul", {}, ...changes.map((change) => element("li", {},
            element("a", { href: linkOf(change) }, element("bdi", {}, nameIn(change, only))), " ",
            element("span", { class: "quiet kl-of" }, klOf(change))))));
}

/**
 * Tells the cause of an entry: of several monitors, with the name of one, unless it is the number of rows of all.
 *
 * @param {Element} node
 * @param {Element} why
 * @param {Event[]} changes
 * @param {string} sentence
 */
function explain(node, why, changes, sentence) {
    const isOfRows = sentence.startsWith("rows: ");
    const [rows] = sentence.split("; ");
    const name = changes.length > 1 && !isOfRows && sentence && [element("bdi", {}, nameIn(toldOf(changes), baseOf(changes[0]))), ": "];
    fill(why, ...(name || []), sentenceText(changes.length > 1 && isOfRows ? rows : sentence));
    if (isOfRows)
        node.querySelectorAll(".kl-of").forEach((each) => each.remove());
}

/**
 * @param {Event[]} changes of one group, at the same time
 * @param {HTMLElement} why
 */
function lineOf(changes, why) {
    const [change] = changes;
    const { group = "", name = "", at, from, to } = change;
    const isAlone = changes.length === 1;
    return element("li", {},
        element("time", { datetime: at, title: ago(at) }, time(at)),
        element("span", {}, badge(looked(from)), " → ", badge(looked(to))),
        isAlone ? element("span", {}, element("a", { href: linkOf(change) }, element("bdi", {}, group), " / ", element("bdi", {}, name)), " ",
            element("span", { class: "quiet kl-of" }, klOf(change)))
            : monitorsOf(changes),
        why);
}

/** @type {import("./start.js").Show} */
export function events(main, query) {
    const view = new Events(main, query);
    view.refresher.start();
    return {
        redraw: () => view.redraw(),
        update: (changed) => {
            view.query = changed;
            view.refresher.load();
        },
        leave: () => {
            view.seen.disconnect();
            view.refresher.stop();
        },
    };
}
