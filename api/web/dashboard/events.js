/* Changes of state of all monitors, newest first. */
import { address, call } from "./api.js";
import { element, fill } from "./dom.js";
import { ago, isolateLabels, number, plural, time } from "./format.js";
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

/** Rises whose cause is read, each by a request of its own. */
const EXPLAINED = 20;

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
        this.list = element("div");
        this.state = element("select", { id: "to", change: () => this.go({ to_state: this.state.value || null }) },
            ...STATES.map(([value, text]) => element("option", { value }, text)));
        this.picker = new RangePicker((changes) => this.go(changes));
        const group = query.get("group");
        fill(main,
            element("p", { class: "crumbs" }, element("a", { href: "?" }, "Monitors"), group && " › ",
                group && element("a", { href: `?${new URLSearchParams({ group })}` }, element("bdi", {}, group))),
            element("div", { class: "title" }, element("h1", {}, "Changes of state"), this.refresher.bar),
            this.health.node, this.refresher.alert, this.notifications.node,
            element("div", { class: "filters" }, this.picker.node,
                element("label", { for: "to" }, "Became "), this.state),
            element("section", { class: "panel", "aria-label": "Changes" }, this.list));
        document.title = "Changes of state · kldiv";
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
        const wanted = this.query.get("to_state") ?? "";
        this.state.value = wanted;
        this.show(response.events.filter((/** @type {Event} */ { to }) => !wanted || to === wanted), response.next !== null);
    }

    /**
     * @param {Event[]} changes
     * @param {boolean} more
     */
    show(changes, more) {
        const text = JSON.stringify([changes, more, this.state.value]);
        if (text === this.shown)
            return;
        this.shown = text;
        const all = together(changes);
        const newest = new Set(all.filter(([change]) => isOfWindow(change) && rises(change)).slice(0, EXPLAINED));
        fill(this.list,
            changes.length === 0 ? element("p", { class: "quiet" }, more ? "None of the changes that are loaded is such a one."
                : `No monitor ${this.state.value ? "has come to this state" : "has changed its state"} in this time.`)
                : element("ol", { class: "feed" }, ...all.map((some) => entry(some, newest.has(some) && this.cause(some[0])))),
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

/**
 * Changes that several monitors of a group made at the same time, such as when a batch is missing, are one entry.
 *
 * @param {Event[]} changes newest first
 * @returns {Event[][]}
 */
function together(changes) {
    /** @type {Map<string, Event[]>} */
    const entries = new Map();
    for (const change of changes) {
        const { group, at, from, to } = change;
        const key = JSON.stringify([group, at, from, to]);
        entries.set(key, [...entries.get(key) ?? [], change]);
    }
    return [...entries.values()];
}

/** The page of the monitor, with the window that changed its state. @param {Event} change */
function linkOf({ group = "", name = "", window }) {
    return `?${new URLSearchParams({ group, monitor: name, ...(window !== null && { window: String(window) }) })}`;
}

/** @param {Event} change */
function klOf({ kl, infinite }) {
    return kl !== null || infinite ? `KL ${number(infinite ? null : kl)} nats` : "";
}

/** The monitors of an entry, each with its KL. @param {Event[]} changes */
function monitorsOf(changes) {
    const [{ group = "" }] = changes;
    return element("details", {},
        element("summary", {}, element("bdi", {}, group), ` / ${plural(changes.length, "monitor")}`),
        element("ul", {}, ...changes.map((change) => element("li", {},
            element("a", { href: linkOf(change) }, element("bdi", {}, change.name ?? "")), " ",
            element("span", { class: "quiet" }, klOf(change))))));
}

/**
 * @param {Event[]} changes of one group, at the same time
 * @param {Promise<string> | false} cause of the first
 */
function entry(changes, cause) {
    const [change] = changes;
    const { group = "", name = "", at, from, to } = change;
    const isAlone = changes.length === 1;
    const why = element("span", { class: "cause" });
    if (cause)
        cause.then((sentence) => fill(why, !isAlone && sentence && element("bdi", {}, name), !isAlone && sentence && ": ", isolateLabels(sentence)));
    return element("li", {},
        element("time", { datetime: at, title: ago(at) }, time(at)),
        element("span", {}, badge(looked(from)), " → ", badge(looked(to))),
        isAlone ? element("a", { href: linkOf(change) }, element("bdi", {}, group), " / ", element("bdi", {}, name))
            : monitorsOf(changes),
        isAlone && element("span", { class: "quiet" }, klOf(change)),
        cause && why);
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
        leave: () => view.refresher.stop(),
    };
}
