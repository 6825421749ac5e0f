/* Windows of a monitor within a range of time, loaded once and then kept up to date. */
import { address, call } from "./api.js";
import { boundsOf } from "./range.js";

/** @typedef {import("./types.js").Result} Result */

/** Maximum number of windows that one response lists, and that are drawn. */
const PAGE = 1000;
const MAX_DRAWN = 20000;

/** Maximum number of bins whose counts are read for each window of a long range. */
const MAX_BINS = 60;

/** Windows that a refresh reads at a time, until it meets one that is known. */
const RECENT = 100;

export class History {
    /** @param {string[]} path of the monitor */
    constructor(path) {
        this.path = [...path, "windows"];
        this.range = "";
        /** @type {Map<number, Result>} */
        this.known = new Map();
        /** @type {Result[]} oldest first */
        this.windows = [];
        this.partial = false;
    }

    /**
     * Loads the range, or only its newest windows if the rest is known.
     *
     * @param {import("./range.js").Range} range
     * @param {number} length of a window, seconds: one that ends in a period may start before it
     * @param {number} bins of the monitor: windows come with their counts unless these were too many
     * @param {AbortSignal} signal
     */
    async load(range, length, bins, signal) {
        const start = range.from === null ? null : range.from - 1000 * length;
        const key = range.name === "custom" ? JSON.stringify(range) : range.name;
        if (key !== this.range)
            this.known = new Map();
        const fresh = this.known.size === 0;
        const max = range.max ?? MAX_DRAWN;
        const counts = bins <= MAX_BINS || range.max ? "true" : null;
        const found = await this.read({ ...boundsOf({ ...range, from: start }), counts }, max, fresh, signal);
        for (const result of found.windows)
            this.known.set(result.window.id, result);
        if (fresh)
            this.partial = found.more && !range.max;
        this.range = key;
        this.windows = [...this.known.values()]
            .filter(({ window }) => start === null || Date.parse(window.start) >= start)
            .sort((a, b) => Date.parse(a.window.start) - Date.parse(b.window.start) ||
                a.window.id - b.window.id)
            .slice(-max);
    }

    /**
     * @param {import("./api.js").Query} query
     * @param {number} max
     * @param {boolean} fresh true if none is known yet
     * @param {AbortSignal} signal
     */
    async read(query, max, fresh, signal) {
        /** @type {Result[]} */
        const windows = [];
        /** @type {string | null} */
        let cursor = null;
        do {
            const limit = Math.min(fresh ? PAGE : RECENT, max - windows.length);
            const url = address(this.path, { ...query, limit, cursor });
            const response = await call("GET", url, { signal });
            windows.push(...response.windows);
            cursor = response.next;
        } while (cursor && windows.length < max &&
            (fresh || !this.known.has(windows[windows.length - 1].window.id)));
        return { windows, more: cursor !== null };
    }
}
