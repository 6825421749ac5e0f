/* A group of monitors: a table's columns, watched for drift. */
import { encode, isNumbers, type Numbers } from "./tensors.js";
import type { Answer, Call, Caller, Operation, Raw } from "./types.js";

type Cell = number | string | boolean | Date | null | undefined;

/** A table: its columns by name, its rows, or a file of CSV, JSON, .npz or safetensors. Missing are null and NaN; dates
 *  become seconds since 1970. */
export type Table = Record<string, Cell[] | Numbers> | Record<string, Cell>[] | Raw;

type Body<O> = Call<O> extends { body: infer B } ? B : never;
type Query<O> = Call<O> extends { query?: infer Q } ? Q : never;
type Put = Operation<"PUT", "/monitors/{group}">;
type Post = Operation<"POST", "/monitors/{group}/observations">;
type Windows = Operation<"GET", "/monitors/{group}/{name}/windows">;
type Evaluate = Operation<"POST", "/monitors/{group}/{name}/evaluate">;
type EvaluateTable = Operation<"POST", "/monitors/{group}/evaluate">;
type Summary = Operation<"GET", "/groups/{group}">;
type WithDates<Q> = { [K in keyof Q]: K extends "from" | "to" ? Q[K] | Date : Q[K] };
type Mute = Body<Operation<"POST", "/groups/{group}/mute">>;

const plain = (cell: Cell) => (cell instanceof Date ? cell.getTime() / 1000 : cell);

/** Columns that are all typed arrays travel as bytes. */
function bodyOf(table: Table): unknown {
    if (typeof table === "string" || table instanceof Blob || table instanceof ArrayBuffer || ArrayBuffer.isView(table))
        return table;
    if (Array.isArray(table))
        return { rows: table.map((row) => Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, plain(cell)]))) };
    const columns = Object.entries(table as Record<string, Cell[] | Numbers>);
    if (columns.length === 0 || !columns.every(([, column]) => isNumbers(column)))
        return { columns: Object.fromEntries(columns.map(([name, column]) =>
            [name, isNumbers(column) ? column : column.map(plain)])) };
    return encode(Object.fromEntries(columns.map(([name, column]) =>
        [name, { data: column as Numbers, shape: [column.length] }])));
}

export type Observed = { timestamp?: Date | string | number; key?: string };

export class Group {
    constructor(private readonly client: Caller, readonly name: string) {}

    /** Creates or replaces a monitor for each column. Settings are those of api/monitors/README.md. */
    reference(table: Table, settings?: Query<Put>): Promise<Answer<Put>> {
        return this.client.request("PUT", "/monitors/{group}",
                                   { path: this.path, query: settings, body: bodyOf(table) as Body<Put> });
    }

    /** Adds a table to the monitors of its columns. A call with a `key` may be sent again after an error, and counts once. */
    observe(table: Table, { timestamp, key }: Observed = {}): Promise<Answer<Post>> {
        return this.client.request("POST", "/monitors/{group}/observations", {
            path: this.path, headers: { "Idempotency-Key": key }, body: bodyOf(table) as Body<Post>,
            query: { timestamp } as Query<Post>,
        });
    }

    /** Scores a table, or values or counts for one monitor, and stores nothing. */
    evaluate(table: Table): Promise<Answer<EvaluateTable>>;
    evaluate(name: string, body: Body<Evaluate>): Promise<Answer<Evaluate>>;
    evaluate(table: Table, body?: Body<Evaluate>): Promise<Answer<Evaluate> | Answer<EvaluateTable>> {
        if (body === undefined)
            return this.client.request("POST", "/monitors/{group}/evaluate",
                                       { path: this.path, body: bodyOf(table) as Body<EvaluateTable> });
        return this.client.request("POST", "/monitors/{group}/{name}/evaluate",
                                   { path: { ...this.path, name: String(table) }, body });
    }

    /** The configs of all monitors. */
    monitors() {
        return this.client.request("GET", "/monitors/{group}", { path: this.path });
    }

    /** The group's state, what drifts in it, since when, and its history. */
    summary(query?: WithDates<Query<Summary>>) {
        return this.client.request("GET", "/groups/{group}", { path: this.path, query: query as Query<Summary> });
    }

    /** The windows of a monitor, newest first, from all pages. */
    async *windows(name: string, query: WithDates<Query<Windows>> = {}): AsyncGenerator<Answer<Windows>["windows"][number]> {
        let cursor: string | null | undefined;
        do {
            const page = await this.client.request("GET", "/monitors/{group}/{name}/windows", {
                path: { ...this.path, name }, query: { ...query, cursor: cursor ?? undefined } as Query<Windows>,
            });
            yield* page.windows;
            cursor = page.next;
        } while (cursor);
    }

    /** The last closed window of a monitor, with its bins. */
    latest(name: string) {
        return this.client.request("GET", "/monitors/{group}/{name}/windows/{window}",
                                   { path: { ...this.path, name, window: "latest" } });
    }

    /** Changes settings of all monitors by a merge patch; null sets the default. */
    settings(body: Body<Operation<"PATCH", "/monitors/{group}">>) {
        return this.client.request("PATCH", "/monitors/{group}", { path: this.path, body });
    }

    /** Nobody is told for a time. */
    mute(body: Mute) {
        return this.client.request("POST", "/groups/{group}/mute", { path: this.path, body });
    }

    unmute() {
        return this.client.request("DELETE", "/groups/{group}/mute", { path: this.path });
    }

    /** Deletes the monitors with their history. */
    delete() {
        return this.client.request("DELETE", "/monitors/{group}", { path: this.path });
    }

    private get path() {
        return { group: this.name };
    }
}
