/* Two files beside each other: which columns have drifted, and why. The server stores nothing. */
import { address, call, root } from "./api.js";
import { BinChart } from "./bars.js";
import { command, curl, quote } from "./commands.js";
import { element, fill } from "./dom.js";
import { fileChooser } from "./files.js";
import { count, namedBins, number, plural } from "./format.js";
import { attempt, ONLY_MISSING, presenceOf, rank, warnings } from "./outcome.js";
import { sampleBatch, sampleReference } from "./sample.js";
import { mayBeChance, whatMoved } from "./sentences.js";
import { badge, isAlarm, LOOKED } from "./states.js";

/**
 * @typedef {import("./types.js").Result & { name: string }} Result
 * @typedef {"reference" | "current"} Part
 */

/** Columns of the results. */
const COLUMNS = ["Column", "Verdict", "KL, nats", "Because of"];

/** Columns whose bins are drawn. */
const DRAWN = 12;

/** Warnings that the bins show. */
const SHOWN = ["labels_chosen", "labels_cut"];

class FileComparison {
    /** @param {HTMLElement} main */
    constructor(main) {
        /** @type {Record<Part, File | null>} */
        this.files = { reference: null, current: null };
        this.calls = 0;
        /** @type {BinChart[]} */
        this.charts = [];
        this.results = element("section", { "aria-live": "polite" });
        fill(main,
            element("h1", {}, "Compare two files"),
            element("section", { class: "panel" },
                element("p", {}, "Two tables with the same columns, such as last month’s and this month’s: CSV with a header ",
                    "line, JSON, JSON Lines, .npz, each also with .gz. Nothing is stored."),
                element("div", { class: "panels" },
                    fileChooser("Reference table", (file) => this.take("reference", file)),
                    fileChooser("Current table", (file) => this.take("current", file))),
                element("p", {}, element("button", { type: "button", click: () => this.useSample() }, "Use a sample"))),
            this.results);
        document.title = "Compare two files · kldiv";
        main.setAttribute("aria-busy", "false");
    }

    useSample() {
        this.files = { reference: sampleReference(), current: null };
        this.take("current", sampleBatch());
    }

    /**
     * @param {Part} part
     * @param {File} file
     */
    async take(part, file) {
        this.files[part] = file;
        const { reference, current } = this.files;
        if (!reference || !current)
            return;
        const mine = ++this.calls;
        const answer = await attempt(this.results, async () => {
            const form = new FormData();
            form.append("reference", await unpacked(reference), reference.name);
            form.append("current", await unpacked(current), current.name);
            return call("POST", address(["compare"]), { body: form });
        }, () => mine === this.calls);
        if (answer)
            this.show(answer, reference.name, current.name);
    }

    /**
     * @param {{ columns: Result[], warnings: import("./outcome.js").Warning[] }} answer
     * @param {string} reference names of the files
     * @param {string} current
     */
    show({ columns, warnings: told }, reference, current) {
        this.stop();
        const order = (/** @type {Result} */ { verdict }) => LOOKED.indexOf(verdict);
        const worst = [...columns].sort((a, b) => order(a) - order(b) || rank(b) - rank(a));
        const drifting = worst.filter(({ verdict }) => isAlarm(verdict));
        const heading = element("h2", { tabindex: -1 }, `${count(drifting.length)} of ${plural(columns.length, "column")} drift${drifting.length === 1 ? "s" : ""}`);
        const presence = presenceOf(told);
        const notes = told.filter(({ code }) => !SHOWN.includes(code));
        fill(this.results,
            element("div", { class: "panel" }, heading,
                element("p", { class: "quiet" }, element("bdi", {}, reference), " → ", element("bdi", {}, current)),
                element("div", { class: "scroll" }, element("table", { class: "verdicts" },
                    element("thead", {}, element("tr", {}, ...COLUMNS.map((name) =>
                        element("th", { scope: "col", class: name === COLUMNS[2] ? "" : "left" }, name)))),
                    element("tbody", {}, ...worst.map((result) => row(result, presence.has(result.name))))))),
            notes.length > 0 && element("div", { class: "panel" },
                element("h2", {}, "Not compared, or read with care"), ...warnings(notes)),
            element("div", { class: "panels" }, ...drifting.slice(0, DRAWN).map((result) => this.card(result))),
            element("div", { class: "panel" }, element("h2", {}, "The same by a command"),
                command(`kldiv ${quote(reference)} ${quote(current)} --html report.html`, "The package of Python"),
                ![reference, current].some((name) => name.endsWith(".gz")) &&
                    command(curl("-F", `reference=@${reference}`, "-F", `current=@${current}`, new URL("compare", root).href),
                        "curl")));
        this.charts.forEach((chart) => chart.draw());
        heading.focus();
    }

    /** @param {Result} result */
    card(result) {
        const chart = new BinChart();
        chart.show(namedBins(result));
        this.charts.push(chart);
        return element("section", { class: "panel small" },
            element("h3", {}, element("bdi", {}, result.name)), chart.node);
    }

    stop() {
        this.charts.forEach((chart) => chart.stop());
        this.charts = [];
    }
}

/** The content of a file, which may be compressed: parts of a form are not. @param {File} file */
function unpacked(file) {
    return file.name.endsWith(".gz")
        ? new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).blob() : file;
}

/** @param {Result} result @param {boolean} isOfPresence true if only missing values were compared */
function row(result, isOfPresence) {
    return element("tr", {},
        element("th", { scope: "row" }, element("bdi", {}, result.name)),
        element("td", { class: "left" }, badge(result.verdict)),
        element("td", {}, number(result.kl === null && !result.infinite ? undefined : result.kl)),
        element("td", { class: "wrap" }, isAlarm(result.verdict) ? whatMoved(result)
            : isOfPresence ? ONLY_MISSING : mayBeChance(result)));
}

/** @type {import("./start.js").Show} */
export function compareFiles(main) {
    const view = new FileComparison(main);
    return { redraw: () => {}, update: () => {}, leave: () => view.stop() };
}
