/* The numbers of a window, each with its meaning. */
import { element, renew } from "./dom.js";
import { count, nats, number, percent, probability, span } from "./format.js";
import { term } from "./term.js";

/** @typedef {import("./types.js").Result} Result */

/**
 * @param {Result} result
 * @returns {[name: string, value: string, means: string][]}
 */
function numbers(result) {
    const test = result.g_test;
    const score = (/** @type {number | null} */ value) =>
        result.kl === null && !result.infinite ? "–" : nats(value);
    return [
        ["KL", score(result.kl), "Σ p ln(p/q): divergence of the current distribution p from " +
            "the reference q"],
        ["Reverse KL", score(result.kl_reverse), "Σ q ln(q/p): divergence of the reference from the current distribution"],
        ["Jensen-Shannon", score(result.js), "Mean KL of both from their average; at most ln 2"],
        ["PSI", number(result.kl === null && !result.infinite ? undefined : result.psi), "Population stability index: KL and reverse KL together"],
        ["p", test ? probability(test.p_value) : "–", "Probability of a G statistic as large " +
            "without any drift"],
        ["Significant from", test ? nats(test.critical_kl) : "–", "KL that chance exceeds with " +
            `probability ${result.thresholds.significance}`],
        ["Noise floor", result.noise_floor === null ? "–" : nats(result.noise_floor),
            "KL to expect from so few values without any drift"],
        .../** @type {[string, string, string][]} */ (result.mean === undefined ? [] : [
            ["Mean", change(result.mean_reference, result.mean), "Of the reference, and of the current values"],
            ["Standard deviation", change(result.sd_reference, result.sd), "Of the reference, and of the current values"],
        ]),
        ["Values", count(result.n), "Number of values in the window"],
        ["Reference values", result.n_reference === null ? "exact" : count(result.n_reference),
            "Number of values in the reference; exact if probabilities were given"],
        ["Unseen", ratio(result.unseen_ratio), "Part of the values in bins where the reference " +
            "has none"],
        ["Missing", ratio(result.missing_ratio), "Part of the values that are missing"],
        ["Window", span(result.window), "From its start to its end"],
    ];
}

/** A number before and now; a dash where values came as counts. @param {(number | null | undefined)[]} values */
function change(...values) {
    return values.map((value) => typeof value === "number" ? number(value) : "–").join(" → ");
}

/** @param {number | null} value */
function ratio(value) {
    return value === null ? "–" : percent(value);
}

export class Scores {
    constructor() {
        this.list = element("dl", { class: "numbers" });
        this.restated = element("p", { class: "quiet" });
        this.node = element("section", { class: "panel" },
            element("h2", {}, "Numbers"), this.list, this.restated);
        /** @type {Map<string, HTMLElement>} */
        this.values = new Map();
    }

    /** @param {Result} result */
    show(result) {
        for (const [name, value, means] of numbers(result))
            renew(this.valueOf(name, means), value);
        renew(this.restated, result.window.restated &&
            "Values arrived after the window had closed, and its scores were computed again.");
    }

    /**
     * The element of a value, made when the first one is shown.
     *
     * @param {string} name
     * @param {string} means
     */
    valueOf(name, means) {
        let value = this.values.get(name);
        if (!value) {
            value = element("dd");
            this.values.set(name, value);
            this.list.append(element("div", {}, element("dt", {}, term(name, means)), value));
        }
        return value;
    }
}
