/* The client of kldiv's service, by fetch: in browsers, and in Node from 18 on. */
import { ServiceError, firstWords } from "./errors.js";
import { Group } from "./group.js";
import { fromJson, toJson } from "./json.js";
import { pages } from "./pages.js";
import { rawBody } from "./tables.js";
import { decode, encode, kindOf, type Entry, type GivenTensor, type Tensor } from "./tensors.js";
import { Transport, type ClientOptions } from "./transport.js";
import type { Answer, Arguments, Call, Caller, Control, Loose, Method, Operation, Path, Reply, Schemas } from "./types.js";

/** Numbers as nested arrays. */
export type Nested = number | readonly Nested[] | Float32Array | Float64Array;

/** Options of the loss, as api/loss/README.md has them. */
export type LossOptions =
    Loose<Omit<Schemas["LossRequest"],
        "input" | "target" | "shape" | "weight" | "mask" | "grad_output" | "indices" | "log_normalizer">> & Control;

/** `indices` name the elements of a sparse target, counted from 0; -1 is padding. */
export type NestedLoss = LossOptions & {
    weight?: Nested; mask?: readonly (0 | 1 | boolean)[] | Nested; grad_output?: Nested;
    indices?: Nested; log_normalizer?: Nested;
};

/** A mask of tensors holds 0 and 1. */
export type TensorOptions = LossOptions & {
    weight?: GivenTensor; mask?: { readonly data: Uint8Array; readonly shape: readonly number[] }; grad_output?: GivenTensor;
    indices?: { readonly data: Int32Array | BigInt64Array; readonly shape: readonly number[] }; log_normalizer?: GivenTensor;
};

/** A loss of tensors: results by their names, `loss`, `gradient.input`, `gradient.target`; of a partial one `sum`,
 *  `divisor`. */
export type TensorLoss = {
    loss: Tensor;
    tensors: Record<string, Tensor>;
    reduction: string;
    warnings: Schemas["Warning"][];
};

type Query<P extends Path<"GET">> = Call<Operation<"GET", P>> extends { query?: infer Q } ? Q : never;
type Entries<P extends Path<"GET">, N extends string> =
    Answer<Operation<"GET", P>> extends { [K in N]: (infer T)[] } ? AsyncGenerator<T> : never;
type Given = Control & { path?: object; query?: object; headers?: object; body?: unknown };
const SAFETENSORS = "application/vnd.safetensors";

/** A segment of a path. "." and ".." would name another resource. */
function segment(name: unknown): string {
    const text = String(name);
    if (/^\.{0,2}$/.test(text))
        throw new TypeError(`'${text}' is no name of a group, a monitor or a window`);
    try {
        return encodeURIComponent(text);
    } catch {
        throw new TypeError("a name of a group, a monitor or a window is no Unicode text");
    }
}

const isTensor = (value: unknown) => value instanceof Object && "data" in value && "shape" in value;

export class Client implements Caller {
    readonly #transport: Transport;
    /** Without a password. */
    readonly url: string;

    /** `url` may have a path: that under which a proxy has the service; in a page, be a path alone. */
    constructor(url: string | URL = "http://127.0.0.1:8080", options: ClientOptions = {}) {
        this.#transport = new Transport(url, options);
        this.url = this.#transport.url;
    }

    /** Any call of the API: its path, parameters, body and response are those of the OpenAPI document. */
    async request<M extends Method, P extends Path<M>>(
        method: M, path: P, ...call: Arguments<Call<Operation<M, P>>>
    ): Promise<Answer<Operation<M, P>>> {
        const { status, url, data } = await this.reply(method, path, ...call);
        if (status === 304)
            throw new ServiceError(status, "http_304", "nothing has changed: reply() returns the status", { url });
        return data;
    }

    /** As request(), with the status and the headers of the response. */
    async reply<M extends Method, P extends Path<M>>(
        method: M, path: P, ...[call]: Arguments<Call<Operation<M, P>>>
    ): Promise<Reply<Answer<Operation<M, P>>>> {
        const asText = path === "/metrics" || path === "/";
        const reply = await this.#send(method, path, call ?? {}, asText ? "text/plain" : "application/json");
        const data = reply.status === 304 || (reply.status === 204 && method === "DELETE") ? undefined
            : asText ? textOf(reply, true) : jsonOf(reply, path.startsWith("/v2/"));
        return { ...reply, data: data as Answer<Operation<M, P>> };
    }

    /** What a GET returns as text: that of /metrics, or JSON as it came. */
    async text<P extends Path<"GET">>(path: P, ...[call]: Arguments<Call<Operation<"GET", P>>>): Promise<string> {
        return textOf(await this.#send("GET", path, call ?? {}, "*/*"), /^\/($|dashboard|docs)/.test(path));
    }

    /** KL(target || input) of nested arrays, as JSON; or of tensors, as bytes. */
    klDiv(input: GivenTensor, target: GivenTensor, options?: TensorOptions): Promise<TensorLoss>;
    klDiv(input: Nested, target: Nested, options?: NestedLoss): Promise<Schemas["LossAnswer"]>;
    async klDiv(input: unknown, target: unknown, options: NestedLoss | TensorOptions = {}): Promise<unknown> {
        const { signal, timeout, weight, mask, grad_output, indices, log_normalizer, ...query } = options;
        const given = Object.entries({ input, target, weight, mask, grad_output, indices, log_normalizer })
            .filter(([name, value]) => name === "input" || name === "target" || (value !== undefined && value !== null));
        const odd = given.find(([, value]) => isTensor(value) !== isTensor(input));
        if (odd)
            throw new TypeError(`input is ${isTensor(input) ? "a tensor" : "no tensor"} but ${odd[0]} is of kind ${
                kindOf(odd[1])}: all are tensors, { data, shape }, or none`);
        if (!isTensor(input)) {
            const body = { ...Object.fromEntries(given), ...query } as object as Call<Operation<"POST", "/kl_div">>["body"];
            const { url, data } = await this.reply("POST", "/kl_div", { body, signal, timeout });
            if (!("loss" in data || "sum" in data))
                throw unreadable(url, 200, "the response has no loss");
            return data;
        }
        const headers = new Headers({ "Content-Type": SAFETENSORS, Accept: SAFETENSORS });
        const { status, url, data } = await this.#transport.send({
            method: "POST", path: "/kl_div", query, headers, body: encode(given as [string, Entry][]), signal, timeout,
        });
        try {
            const { tensors, metadata } = decode(data);
            return { loss: tensors["loss"], tensors, reduction: metadata["reduction"],
                     warnings: JSON.parse(metadata["warnings"] ?? "[]") };
        } catch (cause) {
            throw unreadable(url, status, `the response is no safetensors; it begins with "${
                firstWords(new TextDecoder().decode(data.slice(0, 1000)))}"`, cause);
        }
    }

    /** The monitors of a group, which need not exist yet. */
    group(name: string): Group {
        return new Group(this, name);
    }

    /** All groups, worst first. */
    groups(query: Query<"/groups"> = {}, control?: Control): Entries<"/groups", "groups"> {
        return pages(query, "groups", (query) => this.request("GET", "/groups", { query, ...control }));
    }

    /** Changes of the states of all monitors, newest first. */
    events(query: Query<"/events"> = {}, control?: Control): Entries<"/events", "events"> {
        return pages(query, "events", (query) => this.request("GET", "/events", { query, ...control }));
    }

    /** All monitors, worst first. */
    monitors(query: Query<"/monitors"> = {}, control?: Control): Entries<"/monitors", "monitors"> {
        return pages(query, "monitors", (query) => this.request("GET", "/monitors", { query, ...control }));
    }

    async #send(method: Method, path: string, call: Given, accept: string): Promise<Reply<ArrayBuffer>> {
        const names = new Map(Object.entries(call.path ?? {}));
        const address = path.replace(/\{(\w+)\}/g, (_, name) => segment(names.get(name) ?? ""));
        const headers = new Headers({ Accept: accept });
        for (const [name, value] of Object.entries(call.headers ?? {}))
            if (value !== undefined && value !== null)
                headers.set(name, String(value));
        const raw = rawBody(call.body);
        if (call.body !== undefined && raw === undefined)
            headers.set("Content-Type", "application/json");
        const body = raw ?? (call.body === undefined ? undefined : toJson(call.body));
        const { query, signal, timeout } = call;
        return this.#transport.send({ method, path: address, query, headers, body, signal, timeout });
    }
}

function unreadable(url: string, status: number, detail: string, cause?: unknown): ServiceError {
    return new ServiceError(status, "unreadable", detail, { url, cause });
}

function textOf({ status, headers, url, data }: Reply<ArrayBuffer>, takesPages: boolean): string {
    const text = new TextDecoder().decode(data);
    if (!takesPages && headers.get("content-type")?.includes("html"))
        throw unreadable(url, status, `the response is a page: "${firstWords(text)}"`);
    return text;
}

/** The JSON of a response: an object, or of some calls an array. */
function jsonOf({ status, url, data }: Reply<ArrayBuffer>, takesArrays: boolean): object {
    const text = new TextDecoder().decode(data);
    let value: unknown;
    try {
        value = fromJson(text);
    } catch (cause) {
        const detail = text ? `the response is not JSON; it begins with "${firstWords(text)}"` : "the response is empty";
        throw unreadable(url, status, detail, cause);
    }
    if (typeof value !== "object" || value === null || (Array.isArray(value) && !takesArrays))
        throw unreadable(url, status, `the response is ${firstWords(text)}, and no object`);
    return value;
}
