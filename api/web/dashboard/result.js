/* The result of a question: the figure and its meaning, rows, bins, the command that gives it. */
import { klCall } from "./answers.js";
import { BinChart } from "./bars.js";
import { binsOf, shown } from "./bins.js";
import { command, curl } from "./commands.js";
import { Contributions } from "./contributions.js";
import { byId, element, fill } from "./dom.js";
import { isolate, plural } from "./format.js";
import { blame } from "./sentences.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./question.js").Question} Question
 */

/** Characters that a word of a command line may have on Linux, and some room. */
const WORD = 120000;

/** Units by base: the name, and how many are a nat. */
const UNITS = { e: { unit: "nats", nat: 1 }, 2: { unit: "bits", nat: Math.LOG2E } };

/** @param {number} value */
function digits(value) {
    return Number.isFinite(value) ? String(Number(value.toPrecision(6)))
        : Number.isNaN(value) ? "not a number" : "∞";
}

/**
 * The command that gives the figure. A body too long for a word of it goes by its standard input.
 *
 * @param {Question} question
 */
function commandOf(question) {
    const { url, body } = klCall(question);
    return body.length < WORD ? curl(url.href, "-d", body)
        : `${curl(url.href, "-d", "@-")} <<'END'\n${body}\nEND`;
}

/** A text of the server about its tensors, with the names of the fields. @param {string} text */
export function inFields(text) {
    return text.replace(/\binput\b/g, "reference").replace(/\btarget\b/g, "current")
        .replace(/( Use|, use) \w+=\w+.*/, "")
        .replace("divide each row by its sum", "“Counts” divides by the sum")
        .replace(/(, and not 1)?: if \w+ holds logits\b/, "$1")
        .replace(/[?.:;, ]+$/, "");
}

/**
 * Findings of the server as sentences. Infinity has one of its own.
 *
 * @param {Question} question
 * @param {Answer} answer
 */
function findings(question, { kl, findings: found }) {
    return found.filter(({ code }) => code !== "loss_not_finite" || Number.isNaN(kl))
        .map(({ code, message, index = [] }) => {
            const bin = code === "loss_not_finite" && question.labels[index[index.length - 1]];
            return element("p", { class: "alert" },
                `The server finds: ${inFields(message)}${bin ? ` (bin ${isolate(bin)})` : ""}.`);
        });
}

/** The view of a result in the page's section of that name. */
export class ResultView {
    constructor() {
        this.chart = new BinChart();
        this.row = 0;
        this.figure = byId("figure");
        this.details = byId("details");
        this.reason = element("p");
        this.bins = element("section", { class: "panel" });
        this.shares = new Contributions();
    }

    /**
     * Says why there is no result.
     *
     * @param {...import("./dom.js").Child} children
     */
    clear(...children) {
        fill(this.figure, element("p", {}, ...children));
        fill(this.details);
        document.title = "KL calculator · kldiv";
    }

    /**
     * @param {Question} question
     * @param {Answer} answer
     * @param {(() => void) | null} cure adds a pseudocount; null if that would not help
     */
    show(question, answer, cure) {
        const { kl, rows, reverse, js } = answer;
        const unit = Number.isNaN(kl) ? "" : UNITS[question.base].unit;
        const infinite = rows.indexOf(Infinity);
        const mean = rows.length > 1 ? "Mean " : "";
        this.row = infinite >= 0 ? infinite : rows.length > this.row ? this.row : 0;
        this.showBins(question, answer);
        fill(this.figure, ...findings(question, answer),
            element("p", { class: "kl-figure" }, `${mean}KL(current ‖ reference)`,
                element("data", { value: kl, title: kl }, digits(kl)), unit),
            this.reason,
            infinite >= 0 && element("p", {},
                "There p > 0 and q = 0, and p log(p/q) is infinite. A pseudocount gives each bin " +
                "of counts a little. ",
                cure && element("button", { type: "button", click: cure },
                    "Use a pseudocount of 0.5")),
            element("p", { class: "hint" },
                `${mean}KL(reference ‖ current) ${digits(reverse)} ${unit}, ` +
                `${mean}Jensen-Shannon divergence ${digits(js)} ${unit}.`));
        fill(this.details, mean && this.rows(question, answer), this.bins, this.shares.node,
            panel("The same by curl", command(commandOf(question), "The same by curl")));
        document.title = `${digits(kl)} ${unit} · KL calculator · kldiv`;
    }

    /**
     * KL of each row; a button shows its bins.
     *
     * @param {Question} question
     * @param {Answer} answer
     */
    rows(question, answer) {
        const buttons = answer.rows.map((_, i) => element("button", {
            type: "button", click: () => {
                this.row = i;
                this.showBins(question, answer);
                press();
            },
        }, `Row ${i + 1}`));
        const press = () => buttons.forEach((button, i) =>
            button.setAttribute("aria-pressed", String(i === this.row)));
        press();
        return panel(`KL of each row, ${UNITS[question.base].unit}`,
            element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows" },
                element("table", {}, element("tbody", {}, ...answer.rows.map((kl, i) =>
                    element("tr", {}, element("th", { scope: "row" }, buttons[i]),
                        element("td", { title: kl }, digits(kl))))))));
    }

    /**
     * Bins of the row that is chosen, and the sentence about them.
     *
     * @param {Question} question
     * @param {Answer} answer
     */
    showBins({ labels, base }, answer) {
        const { unit, nat } = UNITS[base];
        const all = binsOf(answer, this.row, labels, nat);
        const bins = shown(all);
        const infinite = all.filter((bin) => bin.contribution === null);
        const name = answer.rows.length > 1 ? `Row ${this.row + 1}: ` : "";
        fill(this.reason, name, !all.some((bin) => Number.isNaN(bin.contribution)) && blame({
            bins: all, infinite: infinite.length > 0,
            unseen_ratio: infinite.reduce((sum, bin) => sum + bin.current, 0),
        }));
        fill(this.bins, element("h2", {}, `${name}Bins`),
            bins.length < all.length && element("p", {},
                `The ${bins.length} of ${plural(all.length, "bin")} that contribute most.`),
            this.chart.node);
        this.chart.show(bins, unit);
        this.shares.show({ bins });
    }
}

/**
 * @param {string} title
 * @param {Node} child
 */
function panel(title, child) {
    return element("section", { class: "panel" }, element("h2", {}, title), child);
}
