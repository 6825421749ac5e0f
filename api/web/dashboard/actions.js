/* What can be done to a monitor or a group: settings, reference, mute, owner, delete. Each dialog shows its curl line. */
import { address, ApiError, call, request } from "./api.js";
import { BinChart } from "./bars.js";
import { curl } from "./commands.js";
import { openDialog } from "./dialog.js";
import { element, visible } from "./dom.js";
import { comparedWith, count, duration, isolate, nats, plural, time } from "./format.js";
import { periodFields, periodOf } from "./range.js";
import { referenceBins, referenceSize } from "./reference.js";
import { ACKNOWLEDGED } from "./row.js";
import { rises } from "./spans.js";
import { isAlarm, word } from "./states.js";

/**
 * @typedef {import("./types.js").Config} Config
 * @typedef {import("./dialog.js").Values} Values
 * @typedef {import("./dialog.js").Field} Field
 */

const DAY_MS = 86400000;
const DAY_SECONDS = 86400;

/** A warning and a critical number of times. @param {{ warning: number, critical: number }} times */
function timesText({ warning, critical }) {
    return `from ${warning} and ${critical} times`;
}

/** Settings that PATCH changes: their place in a config, what they mean, and how they are entered.
 * @type {{ path: string[], label: string, hint?: string, attributes: { [name: string]: unknown },
 *          empty?: boolean, none?: string, choices?: unknown[], told?: (value: any) => string }[]} */
const SETTINGS = [
    { path: ["compare"], label: "Compared with", hint: "Times of day or of the week need windows of time",
      attributes: {}, choices: ["reference", { previous: 1 }, { previous: 3 }, { previous: 7, period: DAY_SECONDS },
                                { previous: 4, period: 7 * DAY_SECONDS }, { previous: 3, period: "month" }], told: comparedWith },
    { path: ["thresholds", "warning"], label: "Warning from, nats", attributes: { min: 0, step: "any" } },
    { path: ["thresholds", "critical"], label: "Critical from, nats", attributes: { min: 0, step: "any" } },
    { path: ["thresholds", "significance"], label: "p-value below", hint: "The probability without drift that an alarm needs; 1 turns the test off",
      attributes: { min: 0, max: 1, step: "any" } },
    { path: ["ratio"], label: "Rare bins", hint: "A bin's share is so many times that of the reference: warning and critical",
      attributes: {}, empty: true, choices: [{ warning: 1.5, critical: 3 }, { warning: 2, critical: 4 }, { warning: 5, critical: 10 }],
      told: timesText },
    { path: ["volume"], label: "Number of rows", hint: "So many times the usual number, or fewer: warning and critical",
      attributes: {}, empty: true, choices: [{ warning: 1.5, critical: 3 }, { warning: 2, critical: 4 }, { warning: 5, critical: 10 }],
      told: timesText },
    { path: ["pool"], label: "Windows judged together", hint: "A power of two, up to 64",
      attributes: { min: 1, max: 64, step: 1 } },
    { path: ["fire_after"], label: "Bad windows before an alarm", attributes: { min: 1, step: 1 } },
    { path: ["clear_after"], label: "Good windows before its end", attributes: { min: 1, step: 1 } },
    { path: ["min_observations"], label: "Fewest values for a verdict", hint: "Empty: 50, or 5 for each interval",
      attributes: { min: 0, step: "any" }, empty: true },
    { path: ["stale_after"], label: "Silent after", hint: "Without values for this time",
      attributes: {}, empty: true, none: "3 windows of time", choices: [3600, 6 * 3600, DAY_SECONDS, 3 * DAY_SECONDS, 7 * DAY_SECONDS, 30 * DAY_SECONDS], told: duration },
    { path: ["retention_days"], label: "Kept for, days", attributes: { min: 1, step: "any" } },
];

/**
 * @param {string[]} path
 * @param {any} config
 */
function valueAt(path, config) {
    return path.reduce((value, name) => value?.[name], config);
}

/**
 * The merge patch of what differs from a config; all that is filled in where there is none.
 *
 * @param {Values} values
 * @param {Config | null} config
 */
function patchOf(values, config) {
    /** @type {any} */
    const patch = {};
    for (const { path, empty, choices } of SETTINGS) {
        const text = values[path.join(".")] ?? "";
        const value = text === "" ? null : choices ? JSON.parse(text) : Number(text);
        if (value === null && (!empty || !config))
            continue;
        if (config && JSON.stringify(value) === JSON.stringify(valueAt(path, config) ?? null))
            continue;
        const last = path[path.length - 1];
        const parent = path.length > 1 ? (patch[path[0]] ??= {}) : patch;
        parent[last] = value;
    }
    return patch;
}

/**
 * The field of a setting: a number, or one of the choices, to which the present value is added.
 *
 * @param {typeof SETTINGS[number]} setting
 * @param {Config | null} config
 * @returns {Field}
 */
function fieldOf({ path, label, hint, attributes, choices, empty, none = "off", told = String }, config) {
    const name = path.join(".");
    const value = config ? valueAt(path, config) ?? null : null;
    if (!choices)
        return { name, label, hint, type: "number", attributes, value: value === null ? "" : String(value) };
    const texts = new Set([value, ...choices].filter((each) => each !== null).map((each) => JSON.stringify(each)));
    const options = [...texts].map((text) => /** @type {[string, string]} */ ([text, told(JSON.parse(text))]));
    return { name, label, hint, type: "select", attributes, value: value === null ? "" : JSON.stringify(value),
             options: config && !empty ? options : [["", config ? none : "as it is"], ...options] };
}

/** Changes of state that a preview names. */
const TOLD = 5;

/**
 * What settings would have done, beside those of now.
 *
 * @param {{ preview?: import("./types.js").Preview | null }} response
 * @param {{ preview?: import("./types.js").Preview | null }} present
 * @returns {import("./dom.js").Child[]}
 */
function previewText({ preview }, present) {
    if (!preview)
        return [];
    const { alarms, changes, windows } = preview;
    const told = (/** @type {import("./types.js").Change[]} */ some, between = "") =>
        some.slice(0, TOLD).map(({ at, to }) => `${time(at)} ${between}${word(to)}`).join(", ") + (some.length > TOLD ? " …" : "");
    const up = changes.filter(rises);
    const down = changes.filter((change) => isAlarm(change.from) && !rises(change));
    return [
        element("p", {}, `The last ${plural(windows, "window")} would have raised ${plural(alarms, "alarm")}` +
            `${up.length > 0 ? `: ${told(up)}` : ""}.` +
            (present.preview ? ` The present settings raise ${count(present.preview.alarms)}.` : "")),
        down.length > 0 && element("p", {}, `It would have fallen: ${told(down, "to ")}.`),
    ];
}

/**
 * Settings of a monitor, or of all in a group.
 *
 * @param {string[]} path
 * @param {Config | null} config null for a group, of which only what is filled in changes
 */
export function editSettings(path, config) {
    const url = address(path);
    /** @param {Values} values @param {boolean} dry */
    const patch = (values, dry) => call("PATCH", address(path, { dry_run: dry ? "true" : null }), {
        body: JSON.stringify(patchOf(values, config)), type: "application/merge-patch+json",
    });
    const present = config && call("PATCH", address(path, { dry_run: "true" }), { body: "{}", type: "application/merge-patch+json" })
        .catch(() => ({}));
    return openDialog({
        title: `Settings of ${isolate(path[path.length - 1])}`,
        text: config ? "Bins, reference and history stay." : "Fields that stay empty are left as they are in each monitor. Segments of the group change, too.",
        fields: SETTINGS.map((setting) => fieldOf(setting, config)),
        button: "Save",
        command: (values) => curl("-X", "PATCH", url.href, "-H", "Content-Type: application/merge-patch+json",
            "-d", JSON.stringify(patchOf(values, config))),
        run: (values) => patch(values, false),
        preview: config ? async (values) => previewText(...await Promise.all([patch(values, true), present])) : undefined,
    });
}

/**
 * The last stretch of windows at which a monitor was ok, milliseconds; null if it never was.
 *
 * @param {import("./types.js").Change[]} changes newest first
 * @param {(change: import("./types.js").Change) => number} startOf the window that changed the state, milliseconds
 * @returns {[number, number] | null}
 */
export function lastOk(changes, startOf) {
    const at = changes.findIndex(({ to }) => to === "ok");
    return at < 0 ? null : [startOf(changes[at]), at > 0 ? startOf(changes[at - 1]) : Date.now()];
}

/**
 * What a period would make of a monitor: its reference beside the present one, and how many segments get one.
 *
 * @param {Config} config
 * @param {{ monitors: Config[], segments?: unknown[] }} answer of a dry run
 * @param {import("./types.js").Comparison | null} latest the latest window against the period
 * @param {BinChart} chart
 */
function referenceText(config, { monitors: [made], segments = [] }, latest, chart) {
    if (!made)
        return [element("p", {}, "No closed window starts in this period.")];
    const shares = referenceBins(made);
    chart.name("reference", "present reference");
    chart.name("current", "new reference");
    chart.show(referenceBins(config).map((bin, i) => ({ ...bin, current: shares[i].reference })));
    return [element("p", {}, `The new reference has ${plural(referenceSize(made), "value")}, the present one ${count(referenceSize(config))}.` +
        (latest ? ` The latest window then has KL ${nats(latest.kl)}: ${word(latest.verdict)}.` : "") +
        (segments.length > 0 ? ` ${plural(segments.length, "segment")} of the group get a new one, too.` : "")),
            element("div", { class: "small" }, chart.node)];
}

/**
 * The latest window against the windows of a period; null where one of both is missing.
 *
 * @param {Config} config
 * @param {import("./types.js").Result | null} latest
 * @param {{ from: string, to: string }} period
 * @returns {Promise<import("./types.js").Comparison | null>}
 */
async function compareLatest({ group, name }, latest, { from, to }) {
    if (!latest?.window.closed)
        return null;
    const { start } = latest.window;
    const after = new Date(Date.parse(start) + 1).toISOString();
    return call("GET", address(["monitors", group, name, "compare"], { from: start, to: after, against_from: from, against_to: to }))
        .catch(() => null);
}

/**
 * Makes the windows of a period the reference.
 *
 * @param {Config} config
 * @param {import("./types.js").Result | null} latest
 * @param {[number, number] | null} zoom milliseconds that the reader chose
 * @param {[number, number] | null} ok the last stretch that was ok
 */
export function takeReference(config, latest, zoom, ok) {
    const { group, name, began: start } = config;
    const take = (/** @type {Values} */ values, /** @type {boolean} */ dry) =>
        call("POST", address(["monitors", group, "reference"], { include: name, dry_run: dry ? "true" : null }),
             { body: JSON.stringify(periodOf(values)), type: "application/json" });
    const began = start ? Date.parse(start) : null;
    const chart = new BinChart();
    const drift = /** @type {[number, number] | null} */ (began === null ? null : [began, Date.now()]);
    const [from, to] = zoom ?? drift ?? ok ?? [Date.now() - 7 * DAY_MS, Date.now()];
    const before = ok ? ` Before, it was last ok from ${time(new Date(ok[0]).toISOString())} to ${time(new Date(ok[1]).toISOString())}.` : "";
    const why = zoom ? "The period is what the chart shows."
        : drift ? `The period begins with the drift, which becomes the new normal.${before}`
        : ok ? "The period is the last time at which it was ok."
        : "It has not been ok yet: the period is the last 7 days.";
    return openDialog({
        title: `A new reference for ${isolate(name)}`,
        text: "The closed windows of a period become the reference. Choose days that look as the data shall look. " +
            `The monitor starts again with it; its history stays. ${why}`,
        fields: periodFields(from, to),
        button: "Take it as the reference",
        command: (values) => curl(address(["monitors", group, "reference"], { include: name }).href, "-d", JSON.stringify(periodOf(values))),
        run: (values) => take(values, false),
        preview: async (values) => referenceText(config, await take(values, true),
                                                 await compareLatest(config, latest, periodOf(values)), chart),
    });
}

/** For how long something may be muted: seconds. @type {[string, string][]} */
const PERIODS = [["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"], ["604800", "1 week"],
                 ["2592000", "30 days"]];

/** Where a monitor or a group is muted. @param {string[]} path */
function muteAddress(path) {
    return address(path.length === 2 ? ["groups", path[1], "mute"] : [...path, "mute"]);
}

/** What a dialog is about. @param {string[][]} paths of monitors, or of one group */
function nameOf(paths) {
    return paths.length === 1 ? isolate(paths[0][paths[0].length - 1]) : plural(paths.length, "monitor");
}

/**
 * A dialog that sends the same to each of some monitors.
 *
 * @param {string[][]} paths
 * @param {Pick<import("./dialog.js").Dialog, "title" | "text" | "fields" | "button">} texts
 * @param {(path: string[]) => [method: string, url: URL]} where
 * @param {(values: Values) => object} bodyOf
 * @param {string} type of the body
 */
function sendToEach(paths, texts, where, bodyOf, type = "application/json") {
    return openDialog({
        ...texts,
        title: `${texts.title} ${nameOf(paths)}`,
        command: (values) => paths.map(where).map(([method, url]) => curl("-X", method, url.href,
            "-H", `Content-Type: ${type}`, "-d", JSON.stringify(bodyOf(values)))).join("\n"),
        run: (values) => Promise.all(paths.map(where).map(([method, url]) =>
            call(method, url, { body: JSON.stringify(bodyOf(values)), type }))),
    });
}

/**
 * Mutes monitors, or a group, for a time.
 *
 * @param {string[][]} paths
 * @param {string} title
 * @param {string} text
 * @param {string} because the label of the reason
 * @param {string} prefix of a reason that there has to be; "" if there may be none
 */
function muteFor(paths, title, text, because, prefix) {
    return sendToEach(paths, {
        title, button: title, text,
        fields: [{ name: "length", label: "For", type: "select", options: PERIODS, value: "86400" },
                 { name: "reason", label: because, attributes: { maxlength: 200 - prefix.length, required: prefix !== "" } }],
    }, (path) => ["POST", muteAddress(path)], ({ length, reason }) => ({ seconds: Number(length), reason: prefix + reason }));
}

/** Mutes monitors, or a group. @param {...string[]} paths */
export function mute(...paths) {
    return muteFor(paths, "Mute", "State and history go on. Nobody is notified during this time.", "Because", "");
}

/** Mutes monitors, and says who looks at them. @param {...string[]} paths */
export function acknowledge(...paths) {
    return muteFor(paths, "Acknowledge", "It is muted for this time: nobody is notified, and everybody sees who looks at it.",
                   "Who looks at it, and why", ACKNOWLEDGED);
}

/** Ends mutes. @param {...string[]} paths */
export function unmute(...paths) {
    return Promise.all(paths.map((path) => request("DELETE", muteAddress(path))));
}

/**
 * Names who is to look at monitors: their annotation `owner`.
 *
 * @param {string} owner at present
 * @param {...string[]} paths
 */
export function setOwner(owner, ...paths) {
    return sendToEach(paths, {
        title: "Owner of", button: "Save", text: "Who is asked first.",
        fields: [{ name: "owner", label: "Owner", value: owner, hint: "Empty: none" }],
    }, (path) => ["PATCH", address(path)], (values) => ({ annotations: { owner: values.owner || null } }),
    "application/merge-patch+json");
}

/** Deletes a monitor or a group, whose name has to be typed. @param {string[]} path */
export function remove(path) {
    const name = path[path.length - 1];
    const what = path.length === 2 ? "all monitors of the group and of its segments" : "the monitor";
    return openDialog({
        title: `Delete ${isolate(name)}`,
        text: `This deletes ${what} with the whole history. It cannot be undone.`,
        fields: [{ name: "name", label: `Type its name, ${isolate(name)}`,
                   attributes: { required: true } }],
        button: "Delete",
        dangerous: true,
        command: () => curl("-X", "DELETE", address(path).href),
        run: async (values) => {
            if (![name, visible(name)].includes(values.name))
                throw new ApiError(0, "name", "that is not its name");
            await request("DELETE", address(path));
        },
    });
}
