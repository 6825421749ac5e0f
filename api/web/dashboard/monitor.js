/* The page of one monitor. */
import { actionRow, renewActions, subjectOf } from "./action-row.js";
import { editSettings, lastOk, remove, takeReference } from "./actions.js";
import { address, ApiError, call } from "./api.js";
import { BinChart } from "./bars.js";
import { Compare } from "./compare.js";
import { Contributions } from "./contributions.js";
import { element, fill, renew, visible } from "./dom.js";
import { isolate, lasting, namedBins, plural, span, time } from "./format.js";
import { endOf, lengthOf } from "./gaps.js";
import { HealthAlert } from "./health.js";
import { History } from "./history.js";
import { Scores } from "./scores.js";
import { decidedBy, reason, whatMoved } from "./sentences.js";
import { showMonitorSettings } from "./monitor-settings.js";
import { Notes } from "./notes.js";
import { loadPlot } from "./plot.js";
import { changeAddress, rangeOf, RangePicker } from "./range.js";
import { referenceBins, referenceSize } from "./reference.js";
import { Refresher } from "./refresh.js";
import { saveReport } from "./report.js";
import { isOfWindow } from "./spans.js";
import { badge, isAlarm, lookOf, shape, word } from "./states.js";
import { Timeline } from "./timeline.js";
import { WindowTable } from "./windows.js";

/**
 * @typedef {import("./types.js").Config} Config
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Change} Change
 */

/**
 * What one load brought: windows are null if there are none; `first` is that with which the present state began.
 *
 * @typedef {{ config: Config, latest: Result | null, chosen: Result | null, first: Result | null,
 *             changes: Change[] }} Data
 */

/** Changes of state that one response lists, and that the chart shows, at most. */
const LISTED = 1000;

class Monitor {
    /**
     * @param {HTMLElement} main
     * @param {URLSearchParams} query
     */
    constructor(main, query) {
        this.main = main;
        this.query = query;
        this.path = ["monitors", query.get("group") ?? "", query.get("monitor") ?? ""];
        this.history = new History(this.path);
        this.refresher = new Refresher({
            load: (signal) => this.load(signal),
            failed: (error) => this.failed(error),
        });
        this.chart = new Timeline((id) => this.select(id), (zoom) => this.showZoom(zoom));
        this.bins = new BinChart();
        this.accepted = new BinChart(["reference"]); /* before it has a window */
        this.compare = new Compare(this.path, () => this.period(), (periods) => this.name({ compare: periods }));
        this.health = new HealthAlert();
        this.notes = new Notes(this.path[1], this.path[2], () => this.refresher.load());
        this.actions = element("div", { class: "buttons" });
        this.table = new WindowTable((id) => this.select(id));
        this.badge = element("span", { "aria-live": "polite" });
        this.summary = element("section", { "aria-label": "Verdict" });
        this.partial = element("span", { class: "quiet" });
        this.picker = new RangePicker((changes) => this.go(changes));
        this.window = element("p", { class: "quiet" });
        this.verdict = element("p");
        this.toLatest = element("button", {
            type: "button", click: () => this.go({ window: null }),
        }, "Show the latest window");
        this.scores = new Scores();
        this.shares = new Contributions();
        this.shown = "";
        this.acted = ""; /* the config that the buttons are of */
        /** @type {Data | null} */
        this.data = null;
        this.config = element("section", { class: "panel" });
        this.content = element("div", { class: "content" }, element("p", { class: "loading" }, "Loading …"));
        this.build();
    }

    build() {
        const [, group, name] = this.path;
        const groupLink = `?${new URLSearchParams({ group })}`;
        fill(this.main,
            element("p", { class: "crumbs" }, element("a", { href: "?" }, "Monitors"), " › ",
                element("a", { href: groupLink }, element("bdi", {}, group))),
            element("div", { class: "title" }, element("h1", {}, element("bdi", {}, name)),
                this.badge, this.refresher.bar),
            this.health.node, this.refresher.alert, this.content);
        document.title = `${visible(name)} · ${visible(group)} · kldiv`;
    }

    panels() {
        return [
            this.summary, this.actions,
            element("section", { class: "panel" }, element("h2", {}, "Over time"), this.picker.node, this.partial,
                this.chart.node, this.notes.node, this.table.node),
            element("div", { class: "panels" },
                element("section", { class: "panel" },
                    element("h2", {}, "Reference and current"), this.window, this.verdict,
                    this.toLatest, this.bins.node, this.accepted.node),
                this.shares.node),
            this.compare.node,
            element("div", { class: "panels" }, this.scores.node, this.config),
        ];
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const which = this.query.get("window");
        const [config, latest, chosen, changes] = await Promise.all([
            call("GET", address(this.path), { signal }),
            this.read("latest", signal),
            which ? this.read(which, signal) : null,
            call("GET", address([...this.path, "events"], { limit: LISTED }), { signal }),
            loadPlot(), this.health.load(signal), this.notes.load(signal),
        ]);
        const [first] = await Promise.all([
            this.readFirst(config, latest, changes.events, signal),
            this.history.load(rangeOf(this.query), lengthOf(config), (latest?.bins ?? []).length, signal),
        ]);
        this.data = { config, latest, chosen, first, changes: changes.events.filter(isOfWindow) };
        this.show(this.data);
    }

    /**
     * A window; the open one for the latest before one has closed; null if there is none.
     *
     * @param {string} which
     * @param {AbortSignal} signal
     * @returns {Promise<Result | null>}
     */
    async read(which, signal) {
        try {
            return await call("GET", address([...this.path, "windows", which]), { signal });
        } catch (error) {
            if (!(error instanceof ApiError && error.code === "window_not_found"))
                throw error;
            return which === "latest" ? this.read("current", signal) : null;
        }
    }

    /**
     * The window with which an alarm began, if a later one is the latest.
     *
     * @param {Config} config
     * @param {Result | null} latest
     * @param {Change[]} changes newest first
     * @param {AbortSignal} signal
     */
    async readFirst({ state, severity_since: since }, latest, changes, signal) {
        const began = isAlarm(state) && changes.find(({ at, to }) => to === state && at === since);
        return began && began.window !== latest?.window.id ? this.read(String(began.window), signal) : null;
    }

    /** @param {ApiError} error */
    failed(error) {
        this.main.setAttribute("aria-busy", "false");
        this.content.querySelector(".loading")?.remove();
        if (error.status !== 404)
            return;
        this.history = new History(this.path); /* another monitor may come by this name */
        fill(this.content, element("p", { class: "failure" }, "There is no such monitor. "),
            element("p", {}, element("a", { href: "?" }, "All monitors")));
    }

    /** @param {Data} data */
    show({ config, latest, chosen, first, changes }) {
        const which = this.query.get("window");
        const result = which ? chosen : latest;
        this.main.setAttribute("aria-busy", "false");
        if (!this.summary.isConnected)
            fill(this.content, ...this.panels());
        renew(this.badge, badge(lookOf(config)));
        const left = changes.find(({ at }) => at === config.since);
        showVerdict(this.summary, config, latest, first, this.history.windows.find(({ window }) => window.id === left?.window));
        this.showRanges(changes.length === LISTED);
        const { notes } = this.notes;
        const range = rangeOf(this.query);
        this.chart.show({ windows: this.history.windows, changes, notes, config, result, zoom: this.zoom(),
                          ending: { cut: range.name === "latest", to: range.to && range.to / 1000 } });
        this.table.show(this.history.windows, result?.window.id ?? null, this.path);
        this.showActions(config);
        this.compare.show(this.query.get("compare"), Date.parse(latest?.window.end ?? "") || Date.now());
        this.showWindow(result, which !== null, config);
        showMonitorSettings(this.config, config, this.path);
    }

    /** What can be done to the monitor. @param {Config} config */
    showActions(config) {
        const { path } = this;
        const text = JSON.stringify(config);
        if (text === this.acted)
            return;
        this.acted = text;
        const changed = () => this.refresher.load();
        const button = (/** @type {string} */ name, /** @type {() => Promise<unknown>} */ action) =>
            element("button", { type: "button", click: async () => {
                if (await action() !== false)
                    changed();
            } }, name);
        renewActions(this.actions,
            actionRow(subjectOf(config), changed, [
                button("Settings …", () => editSettings(path, config)),
                button("New reference …", () => this.takeReference(config)),
                button("Note …", () => this.writeNote()),
                element("button", { type: "button", click: () => saveReport(path[2]) }, "Save report")]),
            element("button", { type: "button", class: "apart", click: async () => {
                if (await remove(path))
                    location.assign(`?${new URLSearchParams({ group: path[1] })}`);
            } }, "Delete …"));
    }

    /** @param {Config} config */
    takeReference(config) {
        const zoom = this.zoom();
        const starts = new Map(this.history.windows.map(({ window }) => [window.id, Date.parse(window.start)]));
        const startOf = (/** @type {Change} */ { at, window }) =>
            starts.get(window) ?? Date.parse(at) - 1000 * lengthOf(config);
        return takeReference(config, this.data?.latest ?? null, zoom && [zoom[0] * 1000, zoom[1] * 1000],
                             lastOk(this.data?.changes ?? [], startOf));
    }

    /** Writes a note on what the chart shows a part of, on the window that the reader chose, or on now. */
    writeNote() {
        const [from, to] = this.zoom() ?? [];
        const chosen = this.query.get("window") && this.data?.chosen;
        return from && to ? this.notes.write(from * 1000, to * 1000)
            : this.notes.write(chosen ? Date.parse(chosen.window.end) : Date.now());
    }

    /** Shows the same again, in other colours and another zone. */
    redraw() {
        this.shown = this.table.shown = this.acted = "";
        this.chart.redraw();
        if (this.data)
            this.show(this.data);
    }

    /** @param {URLSearchParams} query */
    update(query) {
        this.query = query;
        this.refresher.load();
    }

    /**
     * Shows a window; one that is shown already stays as the reader has it.
     *
     * @param {Result | null} result
     * @param {boolean} isChosen true if the reader chose it, false for the latest
     * @param {Config} config
     */
    showWindow(result, isChosen, config) {
        const parts = [this.bins.node, this.shares.node, this.scores.node];
        parts.forEach((node) => (node.hidden = !result));
        this.toLatest.hidden = !isChosen;
        renew(this.window, result ? windowText(result.window, isChosen) : isChosen
            ? "There is no such window; it may have been too old to be kept."
            : config.revision > 1 ? `The new reference, of ${plural(referenceSize(config), "value")}. The next window is the first that is compared with it.`
                : "Nothing was counted yet: the first observations bring the first window.");
        this.accepted.node.hidden = Boolean(result) || isChosen;
        if (!result && !isChosen)
            this.accepted.show(referenceBins(config));
        renew(this.verdict, isChosen && result &&
            `${word(result.verdict)}: ${blameOf(result).replace(/[^.]$/, "$&.")} ${reason(result, config)}`);
        const text = JSON.stringify(result);
        if (!result || text === this.shown)
            return;
        this.shown = text;
        this.bins.name("current", `current: ${span(result.window)}`);
        const named = { ...result, bins: namedBins(result) };
        this.bins.show(named.bins);
        this.shares.show(named);
        this.scores.show(result);
    }

    /** The period that the address names, seconds. @returns {[number, number] | null} */
    zoom() {
        const [from, to] = ["from", "to"].map((name) => Date.parse(this.query.get(name) ?? "") / 1000);
        return from < to ? [from, to] : null;
    }

    /** The time that the chart shows, seconds. @returns {[number, number] | null} */
    period() {
        const { from, to } = rangeOf(this.query);
        const { windows } = this.history;
        if (from !== null)
            return [from / 1000, (to ?? Date.now()) / 1000];
        return windows.length > 0 ? [Date.parse(windows[0].window.start) / 1000, endOf(windows[windows.length - 1]) + 1] : null;
    }

    /** @param {[number, number] | null} zoom seconds */
    showZoom(zoom) {
        const text = (/** @type {number} */ seconds) => new Date(seconds * 1000).toISOString();
        this.go({ from: zoom && text(zoom[0]), to: zoom && text(zoom[1]) });
    }

    /** @param {boolean} cut true if there are more changes of state than are shown */
    showRanges(cut) {
        this.picker.show(this.query);
        renew(this.partial, this.history.partial && "Only the newest windows of this range are drawn. ",
            cut && `Only the newest ${LISTED} changes of state are marked.`);
    }

    /** @param {number} id */
    select(id) {
        this.go({ window: String(id) });
    }

    /**
     * Changes the address, and loads what it now asks for.
     *
     * @param {Record<string, string | null>} changes null leaves one out
     */
    go(changes) {
        this.name(changes);
        this.refresher.load();
    }

    /** Changes the address alone. @param {Record<string, string | null>} changes */
    name(changes) {
        changeAddress(this.query, changes);
    }
}

/**
 * @param {import("./types.js").Window} window
 * @param {boolean} isChosen
 */
function windowText(window, isChosen) {
    const name = isChosen ? "Window" : window.closed ? "The latest window" : "The first window";
    return `${name}: ${span(window)}${window.closed ? "" : ", still open"}.`;
}

/** What moved, in words, where there is more than noise. @param {Result} result */
function blameOf(result) {
    const drifts = result.verdict === "critical" || result.verdict === "warning";
    const significant = (result.kl ?? 0) >= (result.g_test?.critical_kl ?? 0);
    return result.infinite || (result.kl !== null && (drifts || significant)) ? whatMoved(result) : "";
}

/** Since when a monitor has its state. @param {Config} config */
function sinceText({ state, severity_since: of }) {
    return of && state !== "insufficient_data" ? ` since ${time(of)}, for ${lasting(of)}` : "";
}

/**
 * If a monitor was not ok before it had its state: since when, and the begin of the first window that was not.
 *
 * @param {Config} config
 * @param {Result | undefined} begin the window with which it left ok, if it is in the chart
 */
function beforeText({ state, since, severity_since: of, began }, begin) {
    if (!of || !isAlarm(state))
        return "";
    const why = begin ? decidedBy(begin) : "";
    const first = since && Date.parse(since) < Date.parse(of) ? `Not ok since ${time(since)}${why && `, then ${why}`}. ` : "";
    return first + (began && Date.parse(began) < Date.parse(since ?? of) ? `The first window that was not ok began ${time(began)}.` : "");
}

/**
 * Says how the monitor is, by its latest window.
 *
 * @param {Element} parent
 * @param {Config} config
 * @param {Result | null} latest
 * @param {Result | null} first the window with which the state began
 * @param {Result | undefined} begin the window with which it left ok
 */
function showVerdict(parent, config, latest, first, begin) {
    const look = lookOf(config);
    const told = beforeText(config, begin);
    parent.className = `answer ${look}`;
    const open = latest && !latest.window.closed
        ? "The first window is still open; there is no verdict yet. " : "";
    const cause = latest ? blameOf(latest) : "";
    const began = first ? blameOf(first) : "";
    const before = began === cause ? "" : began;
    const end = latest?.window.end ?? "";
    const silent = config.stale && latest ? ` no values came since ${time(end)}, for ${lasting(end)}` : "";
    const state = `${word(config.state)}${sinceText(config)}`;
    fill(parent,
        look === "silent" ? element("h2", {}, shape(look), ` silent:${silent || " no values come"}`)
            : element("h2", {}, shape(look), ` ${state}`),
        look !== "silent" && told && element("p", {}, told),
        before && element("p", {}, `When it became ${word(config.state)}: ${before}`),
        cause && element("p", { class: "blame" }, before ? `Now: ${cause}` : cause),
        element("p", {}, look === "silent" ? `Its last state: ${state.replace(/, for .*/, "")}. ` : silent && `Silent:${silent}. `, open, latest ? reason(latest, config)
            : `${isolate(config.name)} has received no values ${config.revision > 1
                ? "since its new reference. The windows in the chart were judged by the former one." : "yet."}`));
}

/** @type {import("./start.js").Show} */
export function monitor(main, query) {
    const view = new Monitor(main, query);
    view.refresher.start();
    return {
        redraw: () => view.redraw(),
        update: (changed) => view.update(changed),
        leave: () => {
            view.refresher.stop();
            view.chart.stop();
            view.bins.stop();
            view.accepted.stop();
            view.compare.stop();
        },
    };
}
