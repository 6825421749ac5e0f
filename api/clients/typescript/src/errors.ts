/* Errors of the service: problem details (RFC 9457), with a code for programs. */
import type { Schemas } from "./types.js";

type Problems = Schemas["Problem"]["errors"];
type Details = { url?: string; errors?: Problems; requestId?: string | null; retryAfter?: number | undefined; cause?: unknown };

/** A refusal of the service, or whatever else came in the place of its response. Without a response `status` is 0 and `code`
 *  "unreachable"; of something between, which knows no codes, it is "http_502" and the like; "unreadable" is a response that
 *  is not of the service, "redirected" one that names another URL for a call that is not repeated there. */
export class ServiceError extends Error {
    /** The places in the body or the query that it is about. */
    readonly errors: Problems;
    readonly requestId: string | null;
    /** What was called, without a password. */
    readonly url: string;
    /** Seconds, as the header Retry-After says. */
    readonly retryAfter: number | undefined;

    constructor(
        readonly status: number,
        readonly code: Schemas["Problem"]["code"] | "unreachable" | "unreadable" | "redirected" | `http_${number}`,
        readonly detail: string,
        { url = "", errors = [], requestId = null, retryAfter, cause }: Details = {},
    ) {
        super(`${code}: ${detail}${url && ` (${url})`}`, { cause });
        this.name = "ServiceError";
        this.url = url;
        this.errors = errors;
        this.requestId = requestId;
        this.retryAfter = retryAfter;
    }

    /** A JSON Pointer into the body: that of the first place. */
    get pointer(): string | undefined {
        return this.errors[0]?.pointer;
    }
}

/** The first words of a text, of HTML without its tags. */
export function firstWords(text: string): string {
    return text.slice(0, 10_000).replace(/<(style|script)\b[^]*?<\/\1>|<[^>]*>/gi, " ").replace(/\s+/g, " ").trim().slice(0, 200);
}

function retryAfter(headers: Headers): number | undefined {
    const text = headers.get("retry-after") ?? "";
    const seconds = /^\s*\d+\s*$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
    return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

/** The error of a response whose status is one of an error. */
export function failure({ status, statusText, headers }: Response, text: string, url: string): ServiceError {
    let problem: { [member: string]: unknown } = {};
    try {
        problem = Object(JSON.parse(text));
    } catch {
        // A page of a proxy.
    }
    const code = (typeof problem["code"] === "string" ? problem["code"] : `http_${status}`) as ServiceError["code"];
    const words = text === "null" ? "" : firstWords(text);
    const detail = [problem["detail"], problem["error"], words, statusText]
        .find((each): each is string => typeof each === "string" && each !== "") ?? `status ${status}`;
    const errors = Array.isArray(problem["errors"]) ? problem["errors"].filter((each) => each === Object(each)) : [];
    return new ServiceError(status, code, detail,
                            { url, errors, requestId: headers.get("x-request-id"), retryAfter: retryAfter(headers) });
}

/** Why a call failed, with the causes of causes: fetch says only that it failed. */
export function reason(error: unknown, depth = 0): string {
    if (!(error instanceof Object) || depth > 5)
        return String(error);
    const { name, message, code, cause, errors } = error as
        { name?: string; message?: string; code?: string; cause?: unknown; errors?: unknown[] };
    const own = message || (errors ?? []).map((each) => reason(each, depth + 1)).join(", ") || code || String(name);
    return `${own}${name === "TimeoutError" || name === "AbortError" ? ` (${name})` : ""}`
        + (cause ? `: ${reason(cause, depth + 1)}` : "");
}
