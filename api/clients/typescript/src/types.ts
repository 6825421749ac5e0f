/* Calls of the API as types, taken from those that openapi-typescript makes of its OpenAPI document. */
import type { components, paths } from "./schema.js";

export type { components, paths };
export type Schemas = components["schemas"];
export type Method = "GET" | "PUT" | "POST" | "PATCH" | "DELETE";

/** A body that is sent as it is: text of CSV or JSON, a file, bytes. The service recognizes the format. */
export type Raw = string | Blob | ArrayBuffer | SharedArrayBuffer | ArrayBufferView;

/** What a caller may give for a type of the document: arrays that are readonly, dates for texts, whole numbers as bigint. */
export type Loose<T> =
    T extends string ? (string extends T ? T | Date : T)
    : T extends number ? (number extends T ? T | bigint : T)
    : T extends readonly (infer E)[] ? readonly Loose<E>[]
    : T extends object ? { readonly [K in keyof T]: Loose<T[K]> }
    : T;

/** What every call takes: `timeout` in milliseconds, Infinity for none. With a signal alone there is no timeout. */
export type Control = { signal?: AbortSignal | undefined; timeout?: number | undefined };

/** The operation of a method at a path. */
export type Operation<M extends Method, P extends keyof paths> =
    Lowercase<M> extends keyof paths[P] ? paths[P][Lowercase<M>] : never;

/** The paths that have a method. */
export type Path<M extends Method> = {
    [P in keyof paths]: Operation<M, P> extends { responses: unknown } ? P : never;
}[keyof paths];

type Member<T, K extends string> = K extends keyof T ? T[K] : undefined;
type Given<K extends string, T> =
    [T] extends [undefined] ? unknown : undefined extends T ? { [k in K]?: T } : { [k in K]: T };
type Content<T> = T extends { content: infer C } ? Loose<Member<C, "application/json">> | Raw : undefined;

/** What a call of an operation takes. */
export type Call<O> =
    & Given<"path", Member<Member<O, "parameters">, "path">>
    & Given<"query", Loose<Member<Member<O, "parameters">, "query">>>
    & Given<"headers", Member<Member<O, "parameters">, "header">>
    & Given<"body", Content<Member<O, "requestBody">>>
    & Control;

type Read<R> =
    R extends { content: { "application/json": infer J } } ? J
    : R extends { content: { "text/plain": unknown } | { "text/html": unknown } } ? string
    : undefined;

/** The JSON of an operation's responses that are no errors, or their text; undefined where there is none, as of 204. */
export type Answer<O> = O extends { responses: infer R }
    ? { [S in keyof R & (200 | 201 | 204)]: Read<R[S]> }[keyof R & (200 | 201 | 204)]
    : never;

/** A response with its headers, such as ETag. Of status 304, which If-None-Match asks for, `data` is undefined. */
export type Reply<T> = { status: number; headers: Headers; url: string; data: T };

/** Arguments of a call; none are needed where all are optional. */
export type Arguments<C> = {} extends C ? [call?: C] : [call: C];

/** What sends calls. */
export interface Caller {
    request<M extends Method, P extends Path<M>>(
        method: M, path: P, ...call: Arguments<Call<Operation<M, P>>>
    ): Promise<Answer<Operation<M, P>>>;
}
