/* The page of one monitor. */
import { address, ApiError, call } from "./api.js";
import { BinChart } from "./bars.js";
import { KlChart } from "./chart.js";
import { Contributions } from "./contributions.js";
import { element, fill, renew } from "./dom.js";
import { isolate, lasting, time } from "./format.js";
import { History, RANGES } from "./history.js";
import { Scores } from "./scores.js";
import { blame, reason } from "./sentences.js";
import { settingsOf } from "./settings-of.js";
import { Refresher } from "./refresh.js";
import { badge, shape, word } from "./states.js";
import { WindowTable } from "./windows.js";

/**
 * @typedef {import("./types.js").Config} Config
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Change} Change
 */

/** Changes of state that the chart marks at most. */
const CHANGES = 200;

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
        this.chart = new KlChart((id) => this.select(id));
        this.bins = new BinChart();
        this.table = new WindowTable((id) => this.select(id));
        this.badge = element("span", { "aria-live": "polite" });
        this.answer = element("section", { "aria-label": "Verdict" });
        this.partial = element("span", { class: "quiet" });
        this.ranges = element("div", {
            class: "buttons", role: "group", "aria-label": "Time range",
        }, ...this.makeRanges(), this.partial);
        this.window = element("p", { class: "quiet" });
        this.scores = new Scores();
        this.shares = new Contributions();
        this.shown = "";
        this.config = element("section", { class: "panel" });
        this.content = element("div", {}, element("p", { class: "loading" }, "Loading …"));
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
            this.refresher.alert, this.content);
        document.title = `${name} · ${group} · kldiv`;
    }

    panels() {
        return [
            this.answer,
            element("section", { class: "panel" }, element("h2", {}, "KL over time"), this.ranges,
                this.chart.node, this.table.node),
            element("div", { class: "panels" },
                element("section", { class: "panel" },
                    element("h2", {}, "Reference and current"), this.window, this.bins.node),
                this.shares.node),
            element("div", { class: "panels" }, this.scores.node, this.config),
        ];
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const range = this.query.get("range") ?? RANGES[0].name;
        const which = this.query.get("window") ?? "latest";
        const [config, result, changes] = await Promise.all([
            call("GET", address(this.path), { signal }),
            this.read(which, signal),
            call("GET", address([...this.path, "events"], { limit: CHANGES }), { signal }),
            this.history.load(range, signal),
        ]);
        this.show(config, result, changes.events);
    }

    /**
     * The window that is asked for; before one has closed, the open one; null if there is none.
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

    /** @param {ApiError} error */
    failed(error) {
        this.main.setAttribute("aria-busy", "false");
        if (error.status === 404)
            fill(this.content, element("p", { class: "failure" }, "There is no such monitor. "),
                element("p", {}, element("a", { href: "?" }, "All monitors")));
    }

    /**
     * @param {Config} config
     * @param {Result | null} result
     * @param {Change[]} changes newest first
     */
    show(config, result, changes) {
        this.main.setAttribute("aria-busy", "false");
        if (!this.answer.isConnected)
            fill(this.content, ...this.panels());
        renew(this.badge, badge(config.state));
        showAnswer(this.answer, config, result, changes);
        this.showRanges();
        this.chart.show(this.history.windows, changes, config, result?.window.id ?? null);
        this.table.show(this.history.windows, result?.window.id ?? null, this.path);
        this.showBins(result);
        settingsOf(this.config, config, this.path);
    }

    /**
     * Shows a window; one that is shown already stays as the reader has it.
     *
     * @param {Result | null} result
     */
    showBins(result) {
        const parts = [this.bins.node, this.shares.node, this.scores.node];
        parts.forEach((node) => (node.hidden = !result));
        const kind = result?.window.closed ? "Window" : "Open window";
        renew(this.window, result ? `${kind} of ${time(result.window.end)}`
            : "Nothing was counted yet: the first observations bring the first window.");
        const text = JSON.stringify(result);
        if (!result || text === this.shown)
            return;
        this.shown = text;
        this.bins.show(result.bins ?? []);
        this.shares.show(result);
        this.scores.show(result);
    }

    makeRanges() {
        return RANGES.map(({ name, label }) => element("button", {
            type: "button", value: name, click: () => this.go({ range: name }),
        }, label));
    }

    showRanges() {
        const range = this.query.get("range") ?? RANGES[0].name;
        for (const button of this.ranges.querySelectorAll("button"))
            button.setAttribute("aria-pressed", String(button.value === range));
        renew(this.partial, this.history.partial &&
            "Only the newest windows of this range are drawn.");
    }

    /** @param {number} id */
    select(id) {
        this.go({ window: String(id) });
    }

    /**
     * Changes the address, and loads what it now asks for.
     *
     * @param {Record<string, string>} changes
     */
    go(changes) {
        for (const [name, value] of Object.entries(changes))
            this.query.set(name, value);
        history.replaceState(null, "", `?${this.query}`);
        this.refresher.load();
    }
}

/**
 * @param {Element} parent
 * @param {Config} config
 * @param {Result | null} result
 * @param {Change[]} changes
 */
function showAnswer(parent, config, result, changes) {
    parent.className = `answer ${config.state}`;
    const last = changes[0]?.to === config.state ? changes[0] : null;
    const since = last ? ` since ${time(last.at)}, for ${lasting(last.at)}` : "";
    const lines = [element("h2", {}, shape(config.state), ` ${word(config.state)}${since}`)];
    if (result) {
        lines.push(element("p", {}, reason(result, config)));
        const noise = (result.kl ?? Infinity) <= (result.noise_floor ?? 0);
        if (result.infinite || (result.kl !== null && !noise))
            lines.push(element("p", { class: "blame" }, blame(result)));
    } else {
        lines.push(element("p", {}, `No values of ${isolate(config.name)} came yet.`));
    }
    fill(parent, ...lines);
}

/** @type {import("./start.js").Show} */
export function monitor(main, query) {
    const view = new Monitor(main, query);
    view.refresher.start();
    return () => {
        view.refresher.stop();
        view.chart.stop();
        view.bins.stop();
    };
}
