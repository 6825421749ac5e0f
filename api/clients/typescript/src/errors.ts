/* Errors of the service: problem details (RFC 9457), with a code for programs. */
import type { Schemas } from "./types.js";

type Details = { errors?: Schemas["Problem"]["errors"]; requestId?: string | null; cause?: unknown };

/** A refusal of the service. Without a response `status` is 0 and `code` "unreachable"; of something between, which knows
 *  no codes, it is "http_502" and the like. */
export class ServiceError extends Error {
    /** The places in the body or the query that it is about. */
    readonly errors: Schemas["Problem"]["errors"];
    readonly requestId: string | null;

    constructor(
        readonly status: number,
        readonly code: Schemas["Problem"]["code"] | "unreachable" | "unreadable" | `http_${number}`,
        readonly detail: string,
        { errors = [], requestId = null, cause }: Details = {},
    ) {
        super(`${code}: ${detail}`, { cause });
        this.name = "ServiceError";
        this.errors = errors;
        this.requestId = requestId;
    }

    /** A JSON Pointer into the body: that of the first place. */
    get pointer(): string | undefined {
        return this.errors[0]?.pointer;
    }
}

export function failure(response: Response, text: string): ServiceError {
    let problem: Partial<Schemas["Problem"]> & { error?: string } = {};
    try {
        problem = JSON.parse(text);
    } catch {
        // A page of a proxy.
    }
    const { code = `http_${response.status}` as const, detail = problem.error ?? response.statusText, errors } = problem;
    return new ServiceError(response.status, code, detail, { errors, requestId: response.headers.get("x-request-id") });
}
