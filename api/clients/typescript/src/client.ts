/* The client of kldiv's service, by fetch: in browsers, and in Node from 18 on. */
import { ServiceError, failure } from "./errors.js";
import { Group } from "./group.js";
import { decode, encode, type Tensor } from "./tensors.js";
import type { Answer, Arguments, Call, Caller, Method, Operation, Path, Raw, Schemas } from "./types.js";

/** Numbers as nested arrays. */
export type Nested = number | Nested[];

/** Options of the loss, as api/loss/README.md has them. */
export type LossOptions =
    Omit<Schemas["LossRequest"], "input" | "target" | "shape" | "weight" | "mask" | "grad_output">
    & { signal?: AbortSignal };

export type NestedLoss = LossOptions & { weight?: Nested; mask?: (0 | 1 | boolean)[] | Nested; grad_output?: Nested };

/** A mask of tensors holds 0 and 1. */
export type TensorOptions = LossOptions & {
    weight?: Tensor; mask?: { data: Uint8Array; shape: number[] }; grad_output?: Tensor;
};

/** A loss of tensors: results by their names, `loss`, `gradient.input`, `gradient.target`; of a partial one `sum`, `divisor`. */
export type TensorLoss = {
    loss: Tensor;
    tensors: Record<string, Tensor>;
    reduction: string;
    warnings: Schemas["Warning"][];
};

export type ClientOptions = {
    /** Sent as Authorization: Bearer. */
    token?: string;
    /** Milliseconds until a call without a signal of its own is given up; 60,000. */
    timeout?: number;
    /** In the place of the global one: for a proxy, another transport, tests. */
    fetch?: typeof fetch;
};

/** JSON has no NaN and no infinities, JSON.stringify writes null for them, and typed arrays as objects. */
function toJson(value: unknown): string {
    return JSON.stringify(value, (_, v) =>
        typeof v === "number" && !Number.isFinite(v) ? String(v)
            : ArrayBuffer.isView(v) ? Array.from(v as unknown as ArrayLike<number>) : v);
}

const isRaw = (body: unknown): body is Raw =>
    typeof body === "string" || body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body);

/** A segment of a path. "." and ".." would name another resource. */
function segment(name: unknown): string {
    const text = String(name);
    if (/^\.{0,2}$/.test(text))
        throw new TypeError(`'${text}' is no name of a group, a monitor or a window`);
    return encodeURIComponent(text);
}

export class Client implements Caller {
    readonly url: string;

    /** `url` may have a path: that under which a proxy has the service. */
    constructor(url: string | URL = "http://127.0.0.1:8080", private readonly options: ClientOptions = {}) {
        this.url = String(url).replace(/\/*$/, "");
    }

    /** Any call of the API: its path, parameters, body and response are those of the OpenAPI document. */
    async request<M extends Method, P extends Path<M>>(
        method: M, path: P, ...[call]: Arguments<Call<Operation<M, P>>>
    ): Promise<Answer<Operation<M, P>>> {
        const given: { path?: object; query?: object; headers?: object; body?: unknown; signal?: AbortSignal } = call ?? {};
        const names = new Map(Object.entries(given.path ?? {}));
        const address = String(path).replace(/\{(\w+)\}/g, (_, name) => segment(names.get(name) ?? ""));
        const headers = new Headers({ Accept: "application/json" });
        for (const [name, value] of Object.entries(given.headers ?? {}))
            if (value !== undefined)
                headers.set(name, String(value));
        if (given.body !== undefined && !isRaw(given.body))
            headers.set("Content-Type", "application/json");
        const body = given.body === undefined || isRaw(given.body) ? given.body : toJson(given.body);
        const response = await this.send(method, address, given.query, headers, body, given.signal);
        if (response.status === 204)
            return undefined as Answer<Operation<M, P>>;
        try {
            return JSON.parse(new TextDecoder().decode(response.body));
        } catch {
            throw new ServiceError(response.status, "unreadable", "the response is not JSON");
        }
    }

    /** KL(target || input) of nested arrays, as JSON; or of tensors, as bytes. */
    klDiv(input: Tensor, target: Tensor, options?: TensorOptions): Promise<TensorLoss>;
    klDiv(input: Nested, target: Nested, options?: NestedLoss): Promise<Schemas["LossAnswer"]>;
    async klDiv(input: unknown, target: unknown, options: NestedLoss | TensorOptions = {}): Promise<unknown> {
        const { signal, weight, mask, grad_output, ...query } = options;
        const tensors = { input, target, weight, mask, grad_output };
        if (typeof input !== "object" || Array.isArray(input))
            return this.request("POST", "/kl_div", { body: { ...tensors, ...query } as Schemas["LossRequest"], signal });
        const given = Object.entries(tensors).filter(([, tensor]) => tensor) as [string, Tensor][];
        const kind = "application/vnd.safetensors";
        const headers = new Headers({ "Content-Type": kind, Accept: kind });
        const response = await this.send("POST", "/kl_div", query, headers, encode(Object.fromEntries(given)), signal);
        const { tensors: results, metadata } = decode(response.body);
        return { loss: results["loss"], tensors: results, reduction: metadata["reduction"],
                 warnings: JSON.parse(metadata["warnings"] ?? "[]") };
    }

    /** The monitors of a group, which need not exist yet. */
    group(name: string): Group {
        return new Group(this, name);
    }

    private async send(method: string, path: string, query: object | undefined, headers: Headers, body: Raw | undefined,
                       signal?: AbortSignal): Promise<{ status: number; body: ArrayBuffer }> {
        const { token, timeout = 60_000, fetch = globalThis.fetch } = this.options;
        const url = new URL(this.url + path);
        for (const [name, value] of Object.entries(query ?? {}))
            if (value !== undefined && value !== null)
                url.searchParams.set(name, value instanceof Date ? value.toISOString() : String(value)); // a list with commas
        if (token)
            headers.set("Authorization", `Bearer ${token}`);
        let response, bytes;
        try {
            response = await fetch(url, { method, headers, body, signal: signal ?? AbortSignal.timeout(timeout) });
            bytes = await response.arrayBuffer();
        } catch (error) {
            if (signal?.aborted)
                throw error;
            throw new ServiceError(0, "unreachable", `${this.url} does not respond: ${error}`, { cause: error });
        }
        if (!response.ok)
            throw failure(response, new TextDecoder().decode(bytes));
        return { status: response.status, body: bytes };
    }
}
