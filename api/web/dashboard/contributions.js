/* Bins by what they contribute to KL, as a table. */
import { element, fill } from "./dom.js";
import { binName, number, percent, plural } from "./format.js";

/**
 * @typedef {import("./types.js").Result} Result
 * @typedef {import("./types.js").Bin} Bin
 */

/** Rows that are shown at first. */
const FEW = 10;

const COLUMNS = [
    ["Bin", ""],
    ["Reference", "Part of the reference's values in this bin"],
    ["Current", "Part of the window's values in this bin"],
    ["Contribution", "Nats: p ln(p/q) − p + q, which sums to KL; p is current, q reference, both smoothed"],
    ["Share", "Contribution, of KL"],
    ["Cumulative", "Share of this bin and those above"],
];

/** @param {Bin} bin */
function size(bin) {
    return bin.contribution === null ? Infinity : bin.contribution;
}

/**
 * @param {Bin} bin
 * @param {number} cumulative
 */
function row(bin, cumulative) {
    const infinite = bin.contribution === null;
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--value", `${100 * (infinite ? 1 : bin.share ?? 0)}%`);
    return element("tr", {},
        element("th", { scope: "row", title: bin.name }, element("bdi", {}, binName(bin))),
        element("td", {}, percent(bin.reference)),
        element("td", {}, percent(bin.current)),
        element("td", {}, number(bin.contribution)),
        element("td", {}, bar, " ", bin.share === null ? "–" : percent(bin.share)),
        element("td", {}, bin.share === null ? "–" : percent(Math.min(cumulative, 1))));
}

/** @param {Result} result */
export function contributions(result) {
    const bins = [...(result.bins ?? [])].sort((a, b) => size(b) - size(a));
    const body = element("tbody");
    const rows = (/** @type {number} */ n) => {
        let sum = 0;
        fill(body, ...bins.slice(0, n).map((bin) => row(bin, (sum += bin.share ?? 0))));
    };
    rows(FEW);
    const more = bins.length > FEW && element("button", {
        type: "button",
        click: (/** @type {Event} */ event) => {
            rows(bins.length);
            /** @type {HTMLElement} */ (event.target).remove();
        },
    }, `All ${plural(bins.length, "bin")}`);
    return [
        element("h2", {}, "Contributions to KL"),
        element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Contributions" },
            element("table", {},
                element("thead", {}, element("tr", {}, ...COLUMNS.map(([name, title]) =>
                    element("th", { scope: "col", title: title || null }, name)))), body)),
        element("div", { class: "buttons" }, more),
    ];
}
