/* The settings of a monitor, and commands that use it. */
import { address } from "./api.js";
import { command, curl } from "./commands.js";
import { element, fill } from "./dom.js";
import { comparedWith, count, duration, number, plural } from "./format.js";

/** @typedef {import("./types.js").Config} Config */

/** @param {Config["window"]} window */
function windowText(window) {
    if (typeof window === "string")
        return "one for each request";
    if (window.count)
        return plural(window.count, "value");
    return `${duration(window.seconds ?? 0)}, closed ${window.grace ? `${duration(window.grace)} after its` : "at its"} end`;
}

/** How many labels have a bin, and how they were chosen. @param {number} n @param {number} [choosing] rows that chose */
function labelsText(n, choosing) {
    return plural(n, "label") + (choosing ? `, chosen in ${plural(choosing, "row")}; the other half of the rows counts` : "");
}

/** A value; the address of a page is a link. @param {unknown} value */
function annotation(value) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return /^https?:\/\/\S+$/.test(text) ? element("a", { href: text, rel: "noreferrer" }, text) : text;
}

/** @param {Config} config */
function rows(config) {
    const { bins, thresholds, compare } = config;
    const owner = Object.entries(config.annotations).flatMap(([key, value], i) =>
        [`${i > 0 ? ", " : ""}${key}: `, annotation(value)]);
    return [
        ["Bins", bins.presence ? "values, and missing ones" : bins.labels ? labelsText(bins.labels.length, config.reference?.choosing)
            : `${plural((bins.edges?.length ?? 1) - 1, "interval")} from ` +
              `${number(Number(bins.edges?.[0]))} to ${number(Number(bins.edges?.at(-1)))}`],
        ["Window", windowText(config.window)],
        ["Compared with", comparedWith(compare)],
        ["Time zone", config.timezone],
        ["Thresholds", `warning ${number(thresholds.warning)}, critical ` +
            `${number(thresholds.critical)} nats; significance ${thresholds.significance}`],
        ["Rare bins", config.ratio ? `${number(config.ratio.warning)} times the share is a warning, ` +
            `${number(config.ratio.critical)} times critical` : "not judged by themselves"],
        ["Number of rows", config.volume ? `${number(config.volume.warning)} times the usual, or the usual ` +
            `divided by ${number(config.volume.warning)}, is a warning; ${number(config.volume.critical)} critical` : "not judged"],
        ["Judged together", config.pool > 1 ? `up to ${plural(config.pool, "window")}` : "each window alone"],
        ["Silent after", config.stale_after !== null ? duration(config.stale_after)
            : typeof config.window === "object" && config.window.seconds ? "3 windows" : "never"],
        ["Changes of state", `up after ${plural(config.fire_after, "window")}, down after ` +
            plural(config.clear_after, "window")],
        ["Pseudocount", number(config.pseudocount)],
        ["Kept for", plural(config.retention_days, "day")],
        ["Revision", count(config.revision)],
        ...(owner.length > 0 ? [["Annotations", ...owner]] : []),
    ];
}

/**
 * @param {HTMLElement} parent
 * @param {Config} config
 * @param {string[]} path
 */
export function showMonitorSettings(parent, config, path) {
    const text = JSON.stringify(config, null, 2);
    if (parent.dataset.shown === text) /* what the reader has opened stays open */
        return;
    parent.dataset.shown = text;
    const here = address(path).href;
    const group = address([...path.slice(0, 2), "observations"]).href;
    fill(parent,
        element("h2", {}, "Settings"),
        element("dl", { class: "numbers" }, ...rows(config).map(([name, ...values]) =>
            element("div", {}, element("dt", {}, name), element("dd", {}, ...values)))),
        element("h2", {}, "Commands"),
        command(curl("--data-binary", "@batch.csv", group), "Score a batch"),
        command(curl(`${here}/windows/latest`), "Read the last window"),
        element("details", {}, element("summary", {}, "Settings as JSON"),
            element("pre", {
                tabindex: 0, role: "region", "aria-label": "Settings as JSON", class: "scroll",
            }, text)));
}
