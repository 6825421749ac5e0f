/* Calls of the server that the page comes from, with the token if it wants one. */
import { askToken, token } from "./token.js";

/** Address of the API: the page may lie behind a path prefix. */
export const root = new URL("../", import.meta.url);

/** @typedef {{ detail: string, pointer?: string, parameter?: string }} Place */

/** A refusal of the server, or its silence, which has status 0 and the code "offline". */
export class ApiError extends Error {
    /**
     * @param {number} status
     * @param {string} code
     * @param {string} detail
     * @param {Place[]} [errors] the places that it speaks of
     */
    constructor(status, code, detail, errors = []) {
        super(detail);
        this.status = status;
        this.code = code;
        this.errors = errors;
    }
}

/**
 * @typedef {{ body?: BodyInit, type?: string, signal?: AbortSignal }} Options
 * @typedef {{ [name: string]: string | number | null | undefined }} Query
 */

/**
 * Address of a resource, with segments encoded.
 *
 * @param {string[]} segments
 * @param {Query} [query]
 */
export function address(segments, query = {}) {
    const url = new URL(segments.map(encodeSegment).join("/"), root);
    for (const [name, value] of Object.entries(query))
        if (value !== null && value !== undefined && value !== "")
            url.searchParams.set(name, String(value));
    return url;
}

/**
 * Encodes also the characters that encodeURIComponent leaves and a shell would read.
 *
 * @param {string} segment
 */
function encodeSegment(segment) {
    return encodeURIComponent(segment).replace(
        /[!'()*]/g,
        (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
}

/**
 * @param {string} method
 * @param {URL} url
 * @param {Options} options
 */
async function send(method, url, options) {
    /** @type {Record<string, string>} */
    const headers = { Accept: "application/json" };
    const bearer = token();
    if (options.type)
        headers["Content-Type"] = options.type;
    if (bearer)
        headers["Authorization"] = `Bearer ${bearer}`;
    try {
        return await fetch(url, { method, headers, body: options.body, signal: options.signal });
    } catch (error) {
        if (options.signal?.aborted)
            throw error;
        throw new ApiError(0, "offline", "the server does not respond");
    }
}

/** @param {Response} response */
async function problemOf(response) {
    const problem = await response.json().catch(() => ({}));
    const { code = `http_${response.status}`, detail = response.statusText, errors } = problem;
    return new ApiError(response.status, code, detail, errors);
}

/**
 * Calls the server. A refusal for want of a token asks for one, then calls again.
 *
 * @param {string} method
 * @param {URL} url
 * @param {Options} [options]
 * @returns {Promise<Response>}
 */
export async function request(method, url, options = {}) {
    for (;;) {
        const bearer = token();
        const response = await send(method, url, options);
        if (response.ok)
            return response;
        const problem = await problemOf(response);
        if (response.status !== 401 || !(await askToken(bearer, problem.message)))
            throw problem;
    }
}

/**
 * The same, for responses in JSON.
 *
 * @param {string} method
 * @param {URL} url
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function call(method, url, options = {}) {
    const response = await request(method, url, options);
    try {
        return await response.json();
    } catch (error) {
        if (options.signal?.aborted)
            throw error;
        throw new ApiError(response.status, "unreadable", "its response cannot be read");
    }
}
