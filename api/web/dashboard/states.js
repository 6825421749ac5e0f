/* States of monitors, verdicts of windows, and silence: a word, a shape, a colour. */
import { element, svg } from "./dom.js";

/**
 * Worst first, as the server lists them.
 *
 * @typedef {import("./types.js").State} State
 * @type {State[]}
 */
export const STATES = ["critical", "warning", "insufficient_data", "ok"];

/**
 * What a monitor looks like: one that is silent is not known to be in its state.
 *
 * @typedef {State | "silent"} Look
 * @type {Look[]}
 */
export const LOOKED = ["critical", "warning", "silent", "insufficient_data", "ok"];

/** @type {Record<Look, { word: string, shape: string, means: string }>} */
const LOOKS = {
    critical: {
        word: "critical",
        shape: "M5 0h6l5 5v6l-5 5H5l-5-5V5zM7 3v7h2V3zM7 11v2h2v-2z",
        means: "KL, a rare bin or the number of rows is beyond its critical limit, and chance hardly explains it",
    },
    warning: {
        word: "warning",
        shape: "M8 1l8 14H0zM7 6v5h2V6zM7 12v2h2v-2z",
        means: "KL, a rare bin or the number of rows is beyond its warning limit, and chance hardly explains it",
    },
    silent: {
        word: "silent",
        shape: "M8 0l8 8-8 8-8-8zM5 5v6h2V5zM9 5v6h2V5z",
        means: "no values for longer than stale_after: whether it drifts is not known",
    },
    insufficient_data: {
        word: "too little data",
        shape: "M8 0a8 8 0 110 16A8 8 0 018 0zM8 2a6 6 0 100 12A6 6 0 008 2zM5 7v2h6V7z",
        means: "windows have fewer values than a verdict needs",
    },
    ok: {
        word: "ok",
        shape: "M8 0a8 8 0 110 16A8 8 0 018 0zM3 8l4 4 6-7-1.400-1.200L7 9.300 4.400 6.700z",
        means: "KL is below the thresholds, or chance explains it",
    },
};

/** @param {State} state */
export function isAlarm(state) {
    return state === "critical" || state === "warning";
}

/** How a monitor, or a group, looks. @param {{ state: State, stale: boolean | number }} of @returns {Look} */
export function lookOf({ state, stale }) {
    return stale && !isAlarm(state) ? "silent" : state;
}

/** @param {Look} state */
export function word(state) {
    return LOOKS[state].word;
}

/** @param {Look} state */
export function meaning(state) {
    return LOOKS[state].means;
}

/** @param {Look} state */
export function shape(state) {
    return svg("svg", { class: `shape ${state}`, viewBox: "0 0 16 16", "aria-hidden": "true" },
        svg("path", { d: LOOKS[state].shape, "fill-rule": "evenodd" }));
}

/** @param {Look} state */
export function badge(state) {
    return element("span", { class: `badge ${state}`, title: meaning(state) }, shape(state),
        word(state));
}
