/* Adding monitors by dropping a table: the reference first, then a batch. */
import { address, call } from "./api.js";
import { BinChart } from "./bars.js";
import { element, fill } from "./dom.js";
import { droppedFile, fileChooser } from "./files.js";
import { binName, binTitle, isolate, list, number, percent, plural } from "./format.js";
import { attempt, ONLY_MISSING, presenceOf, rank, warnings } from "./outcome.js";
import { moment } from "./range.js";
import { referenceBins, referenceSize } from "./reference.js";
import { sampleBatch, sampleReference } from "./sample.js";
import { mayBeChance, whatMoved } from "./sentences.js";
import { badge } from "./states.js";

/**
 * @typedef {import("./types.js").Config} Config
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Bin} Bin
 * @typedef {import("./outcome.js").Warning} Warning
 */

/** Ways to make bins, as settings of the API have them. */
const METHODS = [["auto", "Auto"], ["quantile", "Quantiles"], ["width", "Equal widths"],
                 ["labels", "Labels"]];

/** Windows that values are counted by, as a setting of the API has them. */
const WINDOWS = [["batch", "each batch"], ["1h,60s", "hours"], ["1d,1h", "days"], ["1w,1h", "weeks"], ["1000", "1,000 values"]];

const CREATE = "Create the monitors";
const REPLACE = "Replace them";

/** Columns of the results. */
const COLUMNS = ["Monitor", "Verdict", "KL, nats", "Because of"];

/** Monitors whose bins are drawn at once. */
const DRAWN = 12;

class Adding {
    /**
     * @param {HTMLElement} main
     * @param {URLSearchParams} query
     */
    constructor(main, query) {
        /** @type {File | null} */
        this.reference = null;
        /** @type {BinChart[]} */
        this.charts = [];
        this.calls = 0;
        this.isNamed = query.has("into"); /* true if the name of the group is the reader's, not that of a file */
        this.include = query.get("include"); /* the columns that get a monitor; null: all */
        /** @type {Set<string>} columns that the service left out, and the reader wants */
        this.watched = new Set();
        /** @type {string[]} names of the proposed monitors of values */
        this.proposed = [];
        this.seen = ""; /* the choices whose bins are shown */
        this.replaces = false;
        /** @type {Set<string | null>} columns of which only missing values are watched */
        this.presence = new Set();
        /** @type {string[]} names of the monitors that were made */
        this.names = [];
        this.group = element("input", {
            id: "group", required: true, maxlength: 128, size: 24, autocomplete: "off",
            pattern: "(?!\\.{1,2}$).*", title: "Any name but . and ..",
            value: query.get("into") ?? "", change: () => this.preview(), input: () => (this.isNamed = true),
        });
        this.window = element("select", { id: "window" },
            ...WINDOWS.map(([value, text]) => element("option", { value }, text)));
        this.warning = threshold("warning", "0.02");
        this.critical = threshold("critical", "0.1");
        this.when = element("input", { id: "when", type: "datetime-local", step: 1, title: "Empty: now" });
        this.time = element("select", { id: "time" });
        this.method = element("select", { id: "method", change: () => this.preview() },
            ...METHODS.map(([value, text]) => element("option", { value }, text)));
        this.bins = element("input", { id: "bins", type: "number", min: 1, max: 1000, value: 10,
                                       change: () => this.preview() });
        this.button = element("button", { type: "submit", class: "primary" }, CREATE);
        this.isSample = false;
        this.settings = this.makeSettings();
        this.proposal = element("section", { class: "panel", "aria-live": "polite" });
        this.made = element("section", { "aria-live": "polite" });
        this.results = element("section", { "aria-live": "polite" });
        fill(main,
            element("p", { class: "crumbs" }, element("a", { href: "?" }, "Monitors")),
            element("h1", {}, "Add monitors"),
            element("section", { class: "panel" },
                element("h2", {}, "1. A reference table"),
                element("p", {}, "A CSV file with a header line: values of normal data. ",
                    ...(this.include ? ["Its column ", element("bdi", {}, element("b", {}, this.include)), " becomes a monitor."]
                        : ["Each column becomes a monitor."])),
                fileChooser("Reference table", (file) => this.propose(file)),
                element("p", {}, element("button", { type: "button", click: () => this.useSample() }, "Use a sample")),
                this.settings),
            this.made, this.results, this.proposal);
        document.title = "Add monitors · kldiv";
        main.setAttribute("aria-busy", "false");
        const file = droppedFile();
        if (file)
            this.propose(file);
        else if (query.has("sample"))
            this.useSample();
    }

    useSample() {
        this.isSample = true;
        this.propose(sampleReference());
    }

    makeSettings() {
        const field = (/** @type {string} */ text, /** @type {HTMLElement} */ input) =>
            element("div", {}, element("label", { for: input.id }, text), input);
        const form = element("form", { class: "fields", submit: (/** @type {Event} */ event) => {
            event.preventDefault();
            this.create();
        } }, field("Name of the group", this.group), field("Bins by", this.method),
        field("Number of bins", this.bins), field("A window for", this.window),
        field("Warning, nats", this.warning), field("Critical, nats", this.critical),
        this.button);
        form.hidden = true;
        return form;
    }

    /** @param {File} file */
    propose(file) {
        this.reference = file;
        this.watched.clear();
        const name = [...file.name.replace(/\.[^.]*$/, "")].slice(0, 40).join("");
        if (!this.isNamed)
            this.group.value = name || "table";
        this.settings.hidden = false;
        fill(this.made);
        fill(this.results);
        return this.preview();
    }

    /** Names of the monitors that the group has. @returns {Promise<Set<string>>} */
    async present() {
        const url = address(["monitors"], { group: this.group.value, limit: 1000 });
        const response = await attempt(this.proposal, () => call("GET", url));
        return new Set(response?.monitors.map((/** @type {Config} */ { name }) => name));
    }

    /** @param {boolean} dry */
    put(dry) {
        const url = address(["monitors", this.group.value], {
            method: this.method.value, bins: this.bins.value, window: this.window.value,
            warning: this.warning.value, critical: this.critical.value, dry_run: dry ? "true" : null,
            include: this.include ?? (this.watched.size > 0 ? [...new Set([...this.proposed, ...this.watched])].join(",") : null),
        });
        return call("PUT", url, { body: this.reference ?? "", type: "text/csv" });
    }

    /** The choices of the reader, as a text. */
    choices() {
        const { name = "", lastModified = 0 } = this.reference ?? {};
        return JSON.stringify([this.group.value, this.method.value, this.bins.value, this.window.value,
                               this.warning.value, this.critical.value, [...this.watched], name, lastModified]);
    }

    /** Shows the monitors that the table would make. */
    async preview() {
        const mine = ++this.calls;
        const choices = this.choices();
        if (!this.settings.reportValidity())
            return;
        const before = await this.present();
        if (choices !== this.choices()) // typed into meanwhile, which ends with a preview of its own
            return;
        const response = await attempt(this.proposal, () => this.put(true), () => mine === this.calls);
        this.button.hidden = !response;
        if (!response)
            return;
        this.stop();
        const configs = /** @type {Config[]} */ (response.monitors);
        this.proposed = configs.filter(({ bins }) => !bins.presence).map(({ name }) => name);
        const replaced = configs.map(({ name }) => name).filter((name) => before.has(name));
        this.seen = choices;
        this.replaces = replaced.length > 0;
        this.button.textContent = this.replaces ? REPLACE : CREATE;
        fill(this.proposal,
            element("h2", {}, `${plural(configs.length, "monitor")} of ${plural(Math.max(0, ...configs.map((config) => referenceSize(config) + (config.reference?.choosing ?? 0))), "row")}, with these bins`),
            this.replaces && element("div", { class: "failure" },
                element("p", {}, "The group exists. Is this a batch of it? Its columns are scored against the " +
                    "reference that they have. ", element("button", { type: "button", class: "primary",
                        click: () => this.observe(this.group.value, this.reference) }, "Score it as a batch")),
                element("p", {}, `“${REPLACE}” gives ${plural(replaced.length, "monitor")} this reference ` +
                    `and these settings; they start again: ${list(replaced.map(isolate))}.`)),
            ...warnings(response.warnings, (column) => this.watch(column)),
            element("div", { class: "panels" },
                ...configs.slice(0, DRAWN).map((config) => this.card(config))),
            configs.length > DRAWN && element("p", { class: "quiet" },
                `and ${list(configs.slice(DRAWN).map((config) => isolate(config.name)))}.`));
        this.charts.forEach((chart) => chart.draw());
    }

    /** Proposes a monitor for a column that was left out, too. @param {string} column */
    watch(column) {
        this.watched.add(column);
        this.preview();
    }

    /** @param {Config} config */
    card(config) {
        const chart = new BinChart(["reference"]);
        const bins = referenceBins(config);
        chart.show(bins);
        this.charts.push(chart);
        const inner = bins.filter((bin) => bin.kind === "interval" || bin.kind === "label");
        const names = inner.slice(0, 3).map((bin) => binName(bin.name)).join(", ");
        return element("section", { class: "panel small" },
            element("h3", {}, element("bdi", {}, config.name)),
            element("p", { class: "quiet" },
                config.bins.presence ? "values, and missing ones"
                    : `${plural(inner.length, config.bins.labels ? "label" : "interval")}: ${names}${inner.length > 3 ? ", …" : ""}`), chart.node, table(bins));
    }

    /** Makes the monitors, unless that would replace some and the reader does not know yet. */
    async create() {
        if (this.seen !== this.choices()) {
            await this.preview();
            if (this.replaces || this.seen !== this.choices())
                return;
        }
        const group = this.group.value;
        const response = await attempt(this.made, () => this.put(false));
        if (!response)
            return;
        this.names = /** @type {Config[]} */ (response.monitors).map(({ name }) => name);
        this.presence = presenceOf(response.warnings);
        const times = this.offerTimes(response.warnings);
        const heading = element("h2", { tabindex: -1 }, "2. A batch to compare");
        fill(this.made, element("div", { class: "panel" },
            element("p", { class: "ok" }, `${plural(response.monitors.length, "monitor")} of `,
                element("bdi", {}, group), " ready."),
            heading,
            element("p", {}, "A CSV file with the same columns: values of current data. It is stored and scored once you choose it."),
            this.isSample && element("p", {}, element("button", { type: "button", class: "primary",
                click: () => this.observe(group, sampleBatch()) }, "Use the sample’s batch")),
            element("div", { class: "fields" },
                element("div", {}, element("label", { for: "when" }, "When, if not now"), this.when),
                times && element("div", {}, element("label", { for: "time" }, "Time of each row"), this.time)),
            fileChooser("Batch", (file) => this.observe(group, file))));
        heading.focus();
    }

    /** Offers the columns of dates, the first one chosen, where windows are of time. @param {Warning[]} all */
    offerTimes(all) {
        const isOfTime = /^\d+[a-z]/.test(this.window.value);
        const names = all.filter(({ code, column }) => isOfTime && code === "dates" && column)
            .map(({ column }) => column ?? "");
        fill(this.time, ...names.map((name) => element("option", { value: name }, name)),
            element("option", { value: "" }, "the same for all"));
        return names.length > 0;
    }

    /**
     * @param {string} group
     * @param {File | null} file
     */
    async observe(group, file) {
        const time = this.time.value || null;
        const timestamp = this.when.value && !time ? moment(this.when.value) : null;
        const url = address(["monitors", group, "observations"], { timestamp, time });
        const response = await attempt(this.results, () =>
            call("POST", url, { body: file ?? "", type: "text/csv" }));
        if (!response)
            return;
        const results = /** @type {(Result & { name: string })[]} */ (response.monitors);
        const left = this.names.filter((name) => !results.some((result) => result.name === name));
        const sorted = [...results].sort((a, b) => rank(b) - rank(a));
        const heading = element("h2", { tabindex: -1 }, "3. Verdicts on the batch");
        fill(this.results, element("div", { class: "panel" }, heading,
            ...warnings(response.warnings.filter((/** @type {Warning} */ { code }) => code !== "column_absent")),
            response.windows && element("p", {}, windowsText(response.windows)),
            element("p", {}, element("a", { href: `?${new URLSearchParams({ group })}` }, "The group ", element("bdi", {}, group))),
            left.length > 0 && element("p", { class: "alert" },
                `The batch has no values of ${list(left.map(isolate))}.`),
            element("div", { class: "scroll" }, element("table", { class: "verdicts" },
                element("thead", {}, element("tr", {}, ...COLUMNS.map((name) =>
                    element("th", { scope: "col", class: name === COLUMNS[2] ? "" : "left" }, name)))),
                element("tbody", {}, ...sorted.map((result) => row(group, result, this.presence.has(result.name))))))));
        heading.focus();
        heading.scrollIntoView({ block: "start" });
    }

    stop() {
        this.charts.forEach((chart) => chart.stop());
        this.charts = [];
    }
}

/** How many windows a table went to; the verdicts are those of the newest. @param {Record<string, number>} counts */
function windowsText(counts) {
    const said = [["ok", "ok"], ["warning", "warning"], ["critical", "critical"], ["insufficient_data", "with too few values"]]
        .filter(([name]) => counts[name] > 0).map(([name, text]) => `${counts[name]} ${text}`);
    return `Windows of all monitors: ${said.join(", ")}. Below are the newest.`;
}

/**
 * @param {string} id
 * @param {string} value
 */
function threshold(id, value) {
    return element("input", { id, type: "number", min: 0, step: "any", value, required: true, size: 6 });
}

/** A table of the chart's bars. @param {Bin[]} bins */
function table(bins) {
    return element("details", {}, element("summary", {}, "As a table"),
        element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Bins" },
            element("table", {}, element("tbody", {}, ...bins.map((bin) => element("tr", {},
                element("th", { scope: "row" }, element("bdi", {}, binTitle(bin))),
                element("td", {}, percent(bin.reference))))))));
}

/**
 * @param {string} group
 * @param {Result & { name: string }} result
 * @param {boolean} isOfPresence true if only missing values are watched
 */
function row(group, result, isOfPresence) {
    const drifts = result.verdict === "critical" || result.verdict === "warning";
    const query = new URLSearchParams({ group, monitor: result.name });
    return element("tr", {},
        element("th", { scope: "row" },
            element("a", { href: `?${query}` }, element("bdi", {}, result.name))),
        element("td", { class: "left" }, badge(result.verdict)),
        element("td", {}, number(result.kl === null && !result.infinite ? undefined : result.kl)),
        element("td", { class: "wrap" }, drifts ? whatMoved(result)
            : isOfPresence ? ONLY_MISSING : mayBeChance(result)));
}

/** @type {import("./start.js").Show} */
export function add(main, query) {
    const view = new Adding(main, query);
    return { redraw: () => {}, update: () => {}, leave: () => view.stop() };
}
