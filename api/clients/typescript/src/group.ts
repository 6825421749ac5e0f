/* A group of monitors: a table's columns, watched for drift. */
import { ServiceError } from "./errors.js";
import { pages } from "./pages.js";
import { bodyOf, columnOf, type Table } from "./tables.js";
import type { Answer, Call, Caller, Control, Operation } from "./types.js";

type Body<O> = Call<O> extends { body: infer B } ? B : never;
type Query<O> = Call<O> extends { query?: infer Q } ? Q : never;
type Put = Operation<"PUT", "/monitors/{group}">;
type Post = Operation<"POST", "/monitors/{group}/observations">;
type Windows = Operation<"GET", "/monitors/{group}/{name}/windows">;
type Events = Operation<"GET", "/monitors/{group}/{name}/events">;
type Notes = Operation<"GET", "/groups/{group}/notes">;
type Evaluate = Operation<"POST", "/monitors/{group}/{name}/evaluate">;
type EvaluateTable = Operation<"POST", "/monitors/{group}/evaluate">;
type Summary = Operation<"GET", "/groups/{group}">;
type Patch = Operation<"PATCH", "/monitors/{group}">;
type Mute = Operation<"POST", "/groups/{group}/mute">;

export type Observed = Control & { timestamp?: Date | string | number | null; key?: string | null };

/** A response about a table, which has monitors. */
async function ofMonitors<T extends { monitors: unknown }>(answer: Promise<T>): Promise<T> {
    const checked = await answer;
    if (!Array.isArray(checked.monitors))
        throw new ServiceError(200, "unreadable", "the response has no list of monitors");
    return checked;
}

export class Group {
    constructor(private readonly client: Caller, readonly name: string) {}

    /** Creates or replaces a monitor for each column. Settings are those of api/monitors/README.md. */
    async reference(table: Table, settings?: Query<Put>, control?: Control): Promise<Answer<Put>> {
        return ofMonitors(this.client.request("PUT", "/monitors/{group}", {
            path: this.path, query: settings, body: bodyOf(table) as Body<Put>, ...control,
        }));
    }

    /** Adds a table to the monitors of its columns. A call with a `key` may be sent again after an error, and counts once. */
    async observe(table: Table, { timestamp, key, ...control }: Observed = {}): Promise<Answer<Post>> {
        return ofMonitors(this.client.request("POST", "/monitors/{group}/observations", {
            path: this.path, headers: { "Idempotency-Key": key ?? undefined }, body: bodyOf(table) as Body<Post>,
            query: { timestamp } as Query<Post>, ...control,
        }));
    }

    /** Scores a table, or values or counts for one monitor, and stores nothing. */
    evaluate(table: Table, control?: Control): Promise<Answer<EvaluateTable>>;
    evaluate(name: string, body: Body<Evaluate>, control?: Control): Promise<Answer<Evaluate>>;
    async evaluate(table: Table, body?: Body<Evaluate> | Control, control?: Control): Promise<Answer<Evaluate> | Answer<EvaluateTable>> {
        const isBody = body !== undefined && Object.keys(Object(body)).some((name) => name !== "signal" && name !== "timeout");
        if (typeof table !== "string" || (!isBody && table.includes("\n")))
            return ofMonitors(this.client.request("POST", "/monitors/{group}/evaluate", {
                path: this.path, body: bodyOf(table) as Body<EvaluateTable>, ...body as Control,
            }));
        const { values } = Object(body) as { values?: unknown };
        const plain = Array.isArray(values) ? { ...Object(body), values: columnOf("values", values) } : body;
        return this.client.request("POST", "/monitors/{group}/{name}/evaluate",
                                   { path: { ...this.path, name: table }, body: plain as Body<Evaluate>, ...control });
    }

    /** The configs of all monitors. */
    monitors(control?: Control): Promise<Answer<Operation<"GET", "/monitors/{group}">>> {
        return ofMonitors(this.client.request("GET", "/monitors/{group}", { path: this.path, ...control }));
    }

    /** The group's state, what drifts in it, since when, and its history. */
    summary(query?: Query<Summary>, control?: Control): Promise<Answer<Summary>> {
        return this.client.request("GET", "/groups/{group}", { path: this.path, query, ...control });
    }

    /** The windows of a monitor, newest first, from all pages, or from that of a cursor on. */
    windows(name: string, query: Query<Windows> = {}, control?: Control): AsyncGenerator<Answer<Windows>["windows"][number]> {
        return pages(query, "windows", (query) => this.client.request(
            "GET", "/monitors/{group}/{name}/windows", { path: { ...this.path, name }, query, ...control }));
    }

    /** Changes of the state of a monitor, newest first. */
    events(name: string, query: Query<Events> = {}, control?: Control): AsyncGenerator<Answer<Events>["events"][number]> {
        return pages(query, "events", (query) => this.client.request(
            "GET", "/monitors/{group}/{name}/events", { path: { ...this.path, name }, query, ...control }));
    }

    /** The notes of the group. */
    notes(query: Query<Notes> = {}, control?: Control): AsyncGenerator<Answer<Notes>["notes"][number]> {
        return pages(query, "notes", (query) => this.client.request(
            "GET", "/groups/{group}/notes", { path: this.path, query, ...control }));
    }

    /** The last closed window of a monitor, with its bins. */
    latest(name: string, control?: Control): Promise<Answer<Operation<"GET", "/monitors/{group}/{name}/windows/{window}">>> {
        return this.client.request("GET", "/monitors/{group}/{name}/windows/{window}",
                                   { path: { ...this.path, name, window: "latest" }, ...control });
    }

    /** Changes settings of all monitors by a merge patch; null sets the default. */
    settings(body: Body<Patch>, control?: Control): Promise<Answer<Patch>> {
        return this.client.request("PATCH", "/monitors/{group}", { path: this.path, body, ...control });
    }

    /** Nobody is told for a time. */
    mute(body: Body<Mute>, control?: Control): Promise<Answer<Mute>> {
        return this.client.request("POST", "/groups/{group}/mute", { path: this.path, body, ...control });
    }

    unmute(control?: Control): Promise<undefined> {
        return this.client.request("DELETE", "/groups/{group}/mute", { path: this.path, ...control });
    }

    /** Deletes the monitors with their history. */
    delete(control?: Control): Promise<undefined> {
        return this.client.request("DELETE", "/monitors/{group}", { path: this.path, ...control });
    }

    private get path(): { group: string } {
        return { group: this.name };
    }
}
