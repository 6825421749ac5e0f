/* Requests by fetch: addresses, time limits, redirects, repeats, errors. */
import { ServiceError, failure, reason } from "./errors.js";
import { dateText } from "./json.js";
import type { Control, Reply } from "./types.js";

export type ClientOptions = {
    /** Sent as Authorization: Bearer. */
    token?: string | undefined;
    /** Milliseconds until a call is given up that has neither a signal nor a timeout of its own; 60,000. Infinity: never. */
    timeout?: number | undefined;
    /** How often a call that changes nothing, or has a key, is repeated after 429, 502, 503, 504 or no response; 0. */
    retries?: number | undefined;
    /** In the place of the global one: for a proxy, another transport, tests. */
    fetch?: typeof fetch | undefined;
};

export type Sent = Control & {
    method: string; path: string; query?: object | undefined; headers: Headers; body?: string | Blob | Uint8Array | undefined;
};

const MAX_TIMER = 2 ** 31 - 1; // ms: setTimeout takes more for none
const REPEATED = new Set([0, 429, 502, 503, 504]);

function timeLimit(timeout: unknown): number {
    if (typeof timeout !== "number" || !(timeout >= 0))
        throw new TypeError(`timeout is ${String(timeout)}: milliseconds are taken, or Infinity`);
    return timeout;
}

/** A signal of a caller's signal and a time limit, and what ends its timer. */
function limited(signal: AbortSignal | undefined, timeout: number): { signal: AbortSignal; end: () => void } {
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    const late = () => controller.abort(new DOMException(`no response within ${timeout} ms`, "TimeoutError"));
    const timer = timeout === Infinity ? undefined : setTimeout(late, Math.min(timeout, MAX_TIMER));
    signal?.addEventListener("abort", abort);
    if (signal?.aborted)
        abort();
    return { signal: controller.signal, end: () => (clearTimeout(timer), signal?.removeEventListener("abort", abort)) };
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, Math.min(ms, MAX_TIMER));
        signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    });
}

/** The address of a service, and the password that stood in it. */
function addressOf(given: string | URL): { url: string; basic: string | undefined } {
    let url: URL;
    try {
        url = new URL(given, globalThis.location?.href);
    } catch {
        throw new TypeError(`'${given}' is no URL; a path alone is one in a page`);
    }
    if (!/^https?:$/.test(url.protocol))
        throw new TypeError(`'${url.protocol}' does not begin a URL of HTTP`);
    const words = [url.username, url.password].map(decodeURIComponent).join(":");
    const basic = words === ":" ? undefined : `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(words)))}`;
    return { url: `${url.origin}${url.pathname.replace(/\/*$/, "")}`, basic };
}

export class Transport {
    readonly url: string;
    readonly #options: ClientOptions;
    readonly #authorization: string | undefined;

    constructor(url: string | URL, options: ClientOptions) {
        const address = addressOf(url), token = options.token?.trim();
        if (token && !/^[\x21-\x7e]+$/.test(token))
            throw new TypeError("the token has characters that no header can have");
        timeLimit(options.timeout ?? Infinity);
        this.url = address.url;
        this.#options = options;
        this.#authorization = token ? `Bearer ${token}` : address.basic;
    }

    /** The response to a call, if it is no error; its body is read within the time limit. */
    async send(call: Sent): Promise<Reply<ArrayBuffer>> {
        const repeatable = call.method === "GET" || call.headers.has("Idempotency-Key");
        for (let left = repeatable ? this.#options.retries ?? 0 : 0, wait = 250; ; left--, wait *= 2) {
            try {
                return await this.#sendOnce(call);
            } catch (error) {
                if (left <= 0 || !(error instanceof ServiceError) || !REPEATED.has(error.status) || error.code === "redirected")
                    throw error;
                await pause(error.retryAfter !== undefined ? error.retryAfter * 1000 : wait * (0.5 + Math.random()), call.signal);
            }
        }
    }

    async #sendOnce({ method, path, query, headers, body, signal, timeout }: Sent): Promise<Reply<ArrayBuffer>> {
        const { timeout: usual = 60_000, fetch = globalThis.fetch } = this.#options;
        const url = new URL(this.url + path);
        for (const [name, value] of Object.entries(query ?? {}))
            if (value !== undefined && value !== null)
                url.searchParams.set(name, value instanceof Date ? dateText(value) : String(value)); // a list with commas
        if (this.#authorization)
            headers.set("Authorization", this.#authorization);
        const limit = limited(signal, timeLimit(timeout ?? (signal ? Infinity : usual)));
        const redirect = method === "GET" ? "follow" : "manual"; // fetch makes a GET of a POST
        let response: Response, bytes: ArrayBuffer;
        try {
            response = await fetch(url, { method, headers, body: body as BodyInit, redirect, signal: limit.signal });
            bytes = await response.arrayBuffer();
        } catch (error) {
            if (signal?.aborted)
                throw signal.reason;
            throw new ServiceError(0, "unreachable", `there is no response: ${reason(error)}`,
                                   { url: `${method} ${url}`, cause: error });
        } finally {
            limit.end();
        }
        const { status } = response, target = response.headers.get("location");
        const isMoved = response.type === "opaqueredirect" || (status > 300 && status < 400 && status !== 304);
        if (redirect === "manual" && (isMoved || response.redirected))
            throw new ServiceError(status, "redirected", `the call is redirected to ${
                response.redirected ? response.url : target ? new URL(target, url) : "another URL, which browsers hide"
            }, and is not repeated there: give the client that URL`, { url: `${method} ${url}` });
        if (!response.ok && !(status === 304 && headers.has("If-None-Match")))
            throw failure(response, new TextDecoder().decode(bytes), `${method} ${url}`);
        return { status, headers: response.headers, url: `${method} ${url}`, data: bytes };
    }
}
