/* The result of the calculator: the figure and its meaning, rows, bins, the command that gives it. */
import { klCall } from "./divergences.js";
import { BinChart } from "./bars.js";
import { binsOf, shown } from "./bins.js";
import { command, curl } from "./commands.js";
import { Contributions } from "./contributions.js";
import { byId, element, fill } from "./dom.js";
import { isolate, plural } from "./format.js";
import { blame } from "./sentences.js";

/**
 * @typedef {import("./divergences.js").Divergences} Divergences
 * @typedef {import("./loss-request.js").LossRequest} LossRequest
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
 * @param {LossRequest} request
 */
function commandOf(request) {
    const { url, body } = klCall(request);
    return body.length < WORD ? curl(url.href, "-d", body)
        : `${curl(url.href, "-d", "@-")} <<'END'\n${body}\nEND`;
}

/** A text of the server about its tensors, with the names of the fields. @param {string} text */
export function inFields(text) {
    return text.replace(/\binput\b/g, "reference").replace(/\btarget\b/g, "current")
        .replace(/( Use|, use) \w+=\w+.*/, "")
        .replace("divide each row by its sum", "“Counts” divides by the sum")
        .replace(/(, not 1)?: if \w+ holds logits\b/, "$1")
        .replace(/[?.:;, ]+$/, "");
}

/**
 * Findings of the server as sentences. Infinity has one of its own.
 *
 * @param {LossRequest} request
 * @param {Divergences} divergences
 */
function findings(request, { kl, findings: found }) {
    return found.filter(({ code }) => code !== "loss_not_finite" || Number.isNaN(kl))
        .map(({ code, message, index = [] }) => {
            const bin = code === "loss_not_finite" && request.labels[index[index.length - 1]];
            return element("p", { class: "alert" },
                `The server reports: ${inFields(message)}${bin ? ` (bin ${isolate(bin)})` : ""}.`);
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
     * @param {LossRequest} request
     * @param {Divergences} divergences
     * @param {(() => void) | null} addPseudocount null if that would not help
     */
    show(request, divergences, addPseudocount) {
        const { kl, rows, reverse, js } = divergences;
        const unit = Number.isNaN(kl) ? "" : UNITS[request.base].unit;
        const infinite = rows.indexOf(Infinity);
        const mean = rows.length > 1 ? "Mean " : "";
        this.row = infinite >= 0 ? infinite : rows.length > this.row ? this.row : 0;
        this.showBins(request, divergences);
        fill(this.figure, ...findings(request, divergences),
            element("p", { class: "kl-figure" }, `${mean}KL(current ‖ reference)`,
                element("data", { value: kl, title: kl }, digits(kl)), unit),
            this.reason,
            infinite >= 0 && element("p", {},
                "A bin with p > 0 and q = 0 makes p log(p/q) infinite. A pseudocount is added to " +
                "each bin of counts. ",
                addPseudocount && element("button", { type: "button", click: addPseudocount },
                    "Use a pseudocount of 0.5")),
            element("p", { class: "hint" },
                `${mean}KL(reference ‖ current) ${digits(reverse)} ${unit}, ` +
                `${mean}Jensen-Shannon divergence ${digits(js)} ${unit}.`));
        fill(this.details, mean && this.rows(request, divergences), this.bins, this.shares.node,
            panel("The same with curl", command(commandOf(request), "The same with curl")));
        document.title = `${digits(kl)} ${unit} · KL calculator · kldiv`;
    }

    /**
     * KL of each row; a button shows its bins.
     *
     * @param {LossRequest} request
     * @param {Divergences} divergences
     */
    rows(request, divergences) {
        const buttons = divergences.rows.map((_, i) => element("button", {
            type: "button", click: () => {
                this.row = i;
                this.showBins(request, divergences);
                press();
            },
        }, `Row ${i + 1}`));
        const press = () => buttons.forEach((button, i) =>
            button.setAttribute("aria-pressed", String(i === this.row)));
        press();
        return panel(`KL of each row, ${UNITS[request.base].unit}`,
            element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows" },
                element("table", {}, element("tbody", {}, ...divergences.rows.map((kl, i) =>
                    element("tr", {}, element("th", { scope: "row" }, buttons[i]),
                        element("td", { title: kl }, digits(kl))))))));
    }

    /**
     * Bins of the row that is chosen, and the sentence about them.
     *
     * @param {LossRequest} request
     * @param {Divergences} divergences
     */
    showBins({ labels, base }, divergences) {
        const { unit, nat } = UNITS[base];
        const all = binsOf(divergences, this.row, labels, nat);
        const bins = shown(all);
        const infinite = all.filter((bin) => bin.contribution === null);
        const name = divergences.rows.length > 1 ? `Row ${this.row + 1}: ` : "";
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
