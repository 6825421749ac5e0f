/* Two periods of a monitor beside each other: this week against last, or what the chart shows against the reference. */
import { localInput, periodFields, periodOf } from "./actions.js";
import { address, call } from "./api.js";
import { BinChart } from "./bars.js";
import { command, curl } from "./commands.js";
import { messageOf } from "./dialog.js";
import { element, fill, freshId } from "./dom.js";
import { nats, plural, probability, time } from "./format.js";
import { whatMoved } from "./sentences.js";
import { badge } from "./states.js";

/** @typedef {import("./types.js").Comparison} Comparison */

const DAY_MS = 86400000;

/** Periods to choose from, in days before the newest window: from, to, against from, to.
 * @type {Record<string, { label: string, days: number[] }>} */
const PRESETS = {
    week: { label: "The last 7 days against the 7 before", days: [7, 0, 14, 7] },
    day: { label: "The last day against the day before", days: [1, 0, 2, 1] },
    month: { label: "The last 30 days against the 30 before", days: [30, 0, 60, 30] },
    reference: { label: "The last 7 days against the reference", days: [7, 0] },
};

export class Compare {
    /**
     * @param {string[]} path of the monitor
     * @param {() => [number, number] | null} zoom seconds that the chart shows
     * @param {(periods: string | null) => void} chosen called with the periods, as the address has them
     */
    constructor(path, zoom, chosen) {
        this.path = path;
        this.zoom = zoom;
        this.chosen = chosen;
        this.newest = Date.now();
        this.shown = "";
        this.chart = new BinChart();
        this.answer = element("div", { "aria-live": "polite" });
        this.form = this.makeForm();
        this.node = element("details", { class: "panel", toggle: () => this.chart.draw() },
            element("summary", {}, "Compare two periods"), this.form, this.answer);
    }

    makeForm() {
        const id = freshId();
        const inputs = [...periodFields(0, 0), ...periodFields(0, 0)].map((field, i) => {
            const own = freshId();
            return element("div", {},
                element("label", { for: own }, i < 2 ? field.label : `Against ${field.label.toLowerCase()}`),
                element("input", { id: own, name: `${i < 2 ? "" : "against_"}${field.name}`, type: "datetime-local",
                                   required: i < 2, step: 1 }));
        });
        const preset = element("select", { id, change: () => this.choose(preset.value) },
            element("option", { value: "" }, "Choose …"),
            ...Object.entries(PRESETS).map(([value, { label }]) => element("option", { value }, label)),
            element("option", { value: "zoom" }, "What the chart shows against as long before"));
        return element("form", { class: "fields", submit: (/** @type {Event} */ event) => {
            event.preventDefault();
            this.ask(this.periods());
        } }, element("div", {}, element("label", { for: id }, "Periods"), preset), ...inputs,
        element("button", { type: "submit" }, "Compare"),
        element("p", { class: "hint" }, "Without the second period: against the reference."));
    }

    /** @param {string} name */
    choose(name) {
        const { days } = PRESETS[name] ?? { days: [] };
        const zoom = this.zoom();
        let times = days.map((each) => this.newest - each * DAY_MS + (each === 0 ? 1000 : 0));
        if (name === "zoom" && zoom)
            times = [zoom[0], zoom[1], 2 * zoom[0] - zoom[1], zoom[0]].map((each) => each * 1000);
        if (times.length > 0)
            this.ask(times.map((each) => new Date(each).toISOString()));
    }

    /** The periods of the form; two times without the second. @returns {string[]} */
    periods() {
        const values = /** @type {any} */ (Object.fromEntries(/** @type {any} */ (new FormData(this.form))));
        const own = periodOf(values);
        const other = periodOf({ from: values.against_from, to: values.against_to });
        return [own.from, own.to, ...(other.from && other.to ? [other.from, other.to] : [])];
    }

    /**
     * Compares what the address names, once.
     *
     * @param {string | null} periods
     * @param {number} newest milliseconds
     */
    show(periods, newest) {
        this.newest = newest;
        if (!periods || periods === this.shown)
            return;
        this.node.open = true;
        this.ask(periods.split("~"));
    }

    /** @param {string[]} periods */
    async ask(periods) {
        const [from, to, against_from, against_to] = periods;
        this.shown = periods.join("~");
        this.chosen(this.shown);
        [...this.form.querySelectorAll("input")].forEach((input, i) =>
            (input.value = periods[i] ? localInput(Date.parse(periods[i])) : ""));
        const url = address([...this.path, "compare"], { from, to, against_from, against_to });
        fill(this.answer, element("p", { class: "loading" }, "…"));
        try {
            this.fill(await call("GET", url), url);
        } catch (error) {
            fill(this.answer, element("p", { class: "failure", role: "alert" }, messageOf(error)));
        }
    }

    /**
     * @param {Comparison} result
     * @param {URL} url
     */
    fill(result, url) {
        const of = (/** @type {{ windows: number }} */ { windows }, /** @type {string} */ from, /** @type {string} */ to) =>
            `${plural(windows, "window")} from ${time(from)} to ${time(to)}`;
        const [from, to] = this.shown.split("~");
        const { against, g_test: test } = result;
        fill(this.answer,
            element("p", {}, of(result, from, to), against
                ? `, against ${of(against, against.from, against.to)}.` : ", against the reference."),
            element("p", { class: "blame" }, badge(result.verdict), ` KL ${nats(result.kl)}`,
                test && `, p ${probability(test.p_value)}`, `. ${whatMoved(result)}`),
            this.chart.node, command(curl(url.href), "The same by curl"));
        this.chart.name("current", `current: ${time(from)} to ${time(to)}`);
        this.chart.name("reference", against ? `reference: ${time(against.from)} to ${time(against.to)}` : "reference of the monitor");
        this.chart.show(result.bins ?? []);
        this.chart.draw();
    }

    stop() {
        this.chart.stop();
    }
}
