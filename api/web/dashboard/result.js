/* The result of a question: the figure, what it means, rows, bins, and the command that gives it. */
import { klCall } from "./answers.js";
import { BinChart } from "./bars.js";
import { binsOf, binTable, digits, MOST, shown } from "./bins.js";
import { command, curl } from "./commands.js";
import { byId, element, fill } from "./dom.js";
import { findingOf, sentenceOf } from "./explain.js";
import { count } from "./format.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./question.js").Question} Question
 */

/** Bytes that a word of a command line may have on Linux, and some room. */
const WORD = 120000;

/** Units by base: the name, and how many are a nat. */
const UNITS = { e: { name: "nats", nat: 1 }, 2: { name: "bits", nat: Math.LOG2E } };

/**
 * The command that gives the figure. A body too long for a word of it goes by its standard input.
 *
 * @param {Question} question
 */
function commandOf(question) {
    const { url, body } = klCall(question);
    return body.length < WORD ? curl(url.href, "-d", body)
        : `${curl(url.href, "--data-binary", "@-")} <<'END'\n${body}\nEND`;
}

/** The view of a result in the page's section of that name. */
export class ResultView {
    constructor() {
        this.chart = new BinChart();
        this.row = 0;
        this.figure = byId("figure");
        this.details = byId("details");
        this.bins = element("section", { class: "panel", "aria-labelledby": "bins-title" });
    }

    /**
     * Says why there is no result.
     *
     * @param {...import("./dom.js").Child} children
     */
    clear(...children) {
        fill(this.figure, element("p", { class: "hint" }, ...children));
        fill(this.details);
        document.title = "KL calculator · kldiv";
    }

    /**
     * @param {Question} question
     * @param {Answer} answer
     * @param {(() => void) | null} cure adds a pseudocount; null if that would not help
     */
    show(question, answer, cure) {
        this.row = Math.min(this.row, answer.rows.length - 1);
        const unit = UNITS[question.base].name;
        this.showFigure(question, answer, cure);
        fill(this.details,
            answer.rows.length > 1 && this.rows(question, answer, unit),
            this.bins,
            element("section", { class: "panel", "aria-labelledby": "others-title" },
                element("h2", { id: "others-title" }, "Other numbers"), others(answer, unit)),
            element("section", { class: "panel", "aria-labelledby": "curl-title" },
                element("h2", { id: "curl-title" }, "The same by curl"),
                command(commandOf(question), "The same by curl")));
        this.showBins(question, answer);
    }

    /**
     * @param {Question} question
     * @param {Answer} answer
     * @param {(() => void) | null} cure
     */
    showFigure(question, answer, cure) {
        const { name: unit, nat } = UNITS[question.base];
        const several = answer.rows.length > 1;
        const at = Math.max(answer.rows.indexOf(Infinity), 0);
        const infinite = answer.kl === Infinity;
        const sentence = several && !infinite ? `The mean of ${count(answer.rows.length)} rows.`
            : (several ? `Row ${at + 1}: ` : "") + sentenceOf(binsOf(answer, at, question.labels, nat));
        const findings = answer.findings.map((each) => findingOf(each, question, answer)).filter(Boolean);
        fill(this.figure,
            element("p", { class: "kl-figure" },
                element("span", {}, several ? "Mean KL(current ‖ reference)" : "KL(current ‖ reference)"),
                element("data", { value: answer.kl, title: `${answer.kl} ${unit}` }, digits(answer.kl)),
                !Number.isNaN(answer.kl) && element("span", {}, unit)),
            sentence && element("p", {}, sentence),
            infinite && element("p", {}, cure ? "A pseudocount helps: each bin gets a little of both. "
                : "It helps to give each bin of the reference a little, as a pseudocount does to counts."),
            infinite && cure && element("button", { type: "button", click: cure },
                "Use a pseudocount of 0.5"),
            ...findings.map((text) => element("p", { class: "alert" }, text)));
        document.title = `${digits(answer.kl)} ${unit} · KL calculator · kldiv`;
    }

    /**
     * KL of each row; a button shows its bins.
     *
     * @param {Question} question
     * @param {Answer} answer
     * @param {string} unit
     */
    rows(question, answer, unit) {
        const buttons = answer.rows.slice(0, MOST).map((_, i) => element("button", {
            type: "button", "aria-pressed": String(i === this.row), click: () => {
                this.row = i;
                buttons.forEach((each, at) => each.setAttribute("aria-pressed", String(at === i)));
                this.showBins(question, answer);
            },
        }, `Row ${i + 1}`));
        return element("section", { class: "panel", "aria-labelledby": "rows-title" },
            element("h2", { id: "rows-title" }, "KL of each row"),
            element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows" },
                element("table", {},
                    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Row"),
                        element("th", { scope: "col" }, `KL, ${unit}`))),
                    element("tbody", {}, ...buttons.map((button, i) => element("tr", {},
                        element("th", { scope: "row" }, button),
                        element("td", { title: answer.rows[i] }, digits(answer.rows[i]))))))),
            buttons.length < answer.rows.length && element("p", { class: "hint" },
                `The first ${count(buttons.length)} of ${count(answer.rows.length)} rows.`));
    }

    /**
     * @param {Question} question
     * @param {Answer} answer
     */
    showBins(question, answer) {
        const { name: unit, nat } = UNITS[question.base];
        const all = binsOf(answer, this.row, question.labels, nat);
        const bins = shown(all);
        const several = answer.rows.length > 1;
        fill(this.bins,
            element("h2", { id: "bins-title" }, several ? `Bins of row ${this.row + 1}` : "Bins"),
            several && element("p", {}, sentenceOf(all)),
            bins.length < all.length && element("p", { class: "hint" },
                `The ${count(bins.length)} of ${count(all.length)} bins that contribute most.`),
            this.chart.node, ...binTable(bins, unit));
        this.chart.show(bins, unit);
    }
}

/**
 * @param {Answer} answer
 * @param {string} unit
 */
function others({ kl, reverse, js, rows }, unit) {
    const mean = rows.length > 1 ? "mean " : "";
    const named = /** @type {const} */ ([
        [`${mean}KL(current ‖ reference), all digits`, kl, String(kl)],
        [`${mean}KL(reference ‖ current)`, reverse, digits(reverse)],
        [`${mean}Jensen-Shannon: KL of both from their middle, halved`, js, digits(js)],
    ]);
    return element("dl", { class: "numbers" }, ...named.map(([name, value, text]) =>
        element("div", {}, element("dt", {}, capital(name)),
            element("dd", { title: value }, Number.isFinite(value) ? `${text} ${unit}` : digits(value)))));
}

/** @param {string} text */
function capital(text) {
    return text[0].toUpperCase() + text.slice(1);
}
