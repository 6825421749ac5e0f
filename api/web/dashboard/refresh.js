/* Keeps a view fresh: loads it each 10 s while the page is seen, and says how old it is. */
import { ApiError } from "./api.js";
import { element, renew } from "./dom.js";
import { duration, time } from "./format.js";

const EVERY_MS = 10000;
const STALE_MS = 3 * EVERY_MS;

/**
 * @typedef {object} View
 * @property {(signal: AbortSignal) => Promise<void>} load
 * @property {(error: ApiError) => void} failed
 */

/**
 * A response of another form than the API's, perhaps a proxy's.
 *
 * @param {unknown} error
 */
function unexpected(error) {
    console.error(error);
    return new ApiError(200, "unexpected", "its response has another form than the API's");
}

/** Refresher of one view; `bar` shows its age and a button that pauses it. */
export class Refresher {
    /**
     * @param {View} view
     */
    constructor(view) {
        this.view = view;
        this.loaded = 0;
        this.tried = 0;
        this.paused = false;
        this.busy = false;
        this.again = false;
        /** @type {ApiError | null} */
        this.error = null;
        this.stopped = new AbortController();
        this.age = element("span", { class: "age" });
        this.alert = element("p", { class: "alert", role: "status" });
        this.button = element("button", { type: "button", click: () => this.pause(!this.paused) });
        this.bar = element("div", { class: "freshness" }, this.age,
            element("button", { type: "button", click: () => this.load() }, "Refresh"),
            this.button);
        this.pause(false);
    }

    start() {
        const { signal } = this.stopped;
        const timer = setInterval(() => this.tick(), 1000);
        signal.addEventListener("abort", () => clearInterval(timer));
        document.addEventListener("visibilitychange", () => this.tick(), { signal });
        window.addEventListener("online", () => this.load(), { signal });
        return this.load();
    }

    stop() {
        this.stopped.abort();
    }

    /** @param {boolean} paused */
    pause(paused) {
        this.paused = paused;
        this.button.textContent = paused ? "Resume" : "Pause";
        this.button.title = paused ? "Load again each 10 s" : "Stop loading each 10 s";
        this.show();
    }

    tick() {
        const due = Date.now() - Math.max(this.loaded, this.tried) >= EVERY_MS;
        if (due && !this.busy && !this.paused && !this.refused && !document.hidden)
            this.load();
        this.show();
    }

    async load() {
        if (this.busy) /* the address changed while numbers came */
            this.again = true;
        if (this.busy)
            return;
        this.busy = true;
        this.again = false;
        this.tried = Date.now();
        try {
            await this.view.load(this.stopped.signal);
            this.loaded = Date.now();
            this.error = null;
        } catch (error) {
            if (this.stopped.signal.aborted)
                return;
            this.error = error instanceof ApiError ? error : unexpected(error);
            this.view.failed(this.error);
        } finally {
            this.busy = false;
            this.show();
            if (this.again)
                this.load();
        }
    }

    show() {
        const age = Date.now() - this.loaded;
        const stale = this.loaded > 0 && age > STALE_MS;
        const since = this.loaded > 0 ? duration(Math.floor(age / 1000)) : "";
        this.age.textContent = since && `Updated ${since} ago${this.paused ? ", paused" : ""}`;
        this.bar.classList.toggle("stale", stale);
        renew(this.alert, this.trouble(stale));
    }

    /** True if the reader gave no token; the next one is asked for only when the reader wants it. */
    get refused() {
        return this.error?.status === 401;
    }

    /** @param {boolean} stale */
    trouble(stale) {
        const shown = this.loaded > 0 ? ` These are the numbers of ${time(this.loaded)}.` : "";
        if (this.error?.status === 0)
            return `Offline: the server does not respond` +
                `${this.paused ? "" : "; trying again every 10 s"}.${shown}`;
        if (this.refused)
            return `Unauthorised: the server requires a token. “Refresh” asks for it.${shown}`;
        if (this.error && this.error.status !== 404) /* the view tells that */
            return `The server gives no numbers: ${this.error.message}.${shown}`;
        return stale && !document.hidden ? `Stale: nothing has been loaded for a while.${shown}` : "";
    }
}
