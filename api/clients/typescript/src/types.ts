/* Calls of the API as types, taken from those that openapi-typescript makes of its OpenAPI document. */
import type { components, paths } from "./schema.js";

export type { components, paths };
export type Schemas = components["schemas"];
export type Method = "GET" | "PUT" | "POST" | "PATCH" | "DELETE";

/** A body that is sent as it is: text of CSV or JSON, a file, bytes. The service recognizes the format. */
export type Raw = string | Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer>;

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
type Content<T> = T extends { content: infer C } ? Member<C, "application/json"> | Raw : undefined;

/** What a call of an operation takes. */
export type Call<O> =
    & Given<"path", Member<Member<O, "parameters">, "path">>
    & Given<"query", Member<Member<O, "parameters">, "query">>
    & Given<"headers", Member<Member<O, "parameters">, "header">>
    & Given<"body", Content<Member<O, "requestBody">>>
    & { signal?: AbortSignal };

/** The JSON of an operation's responses that are no errors; undefined where there is none, as of 204. */
export type Answer<O> = O extends { responses: infer R }
    ? { [S in keyof R & (200 | 201 | 204)]: R[S] extends { content: { "application/json": infer J } } ? J : undefined }[
        keyof R & (200 | 201 | 204)]
    : never;

/** Arguments of a call; none are needed where all are optional. */
export type Arguments<C> = {} extends C ? [call?: C] : [call: C];

/** What sends calls. */
export interface Caller {
    request<M extends Method, P extends Path<M>>(
        method: M, path: P, ...call: Arguments<Call<Operation<M, P>>>
    ): Promise<Answer<Operation<M, P>>>;
}
