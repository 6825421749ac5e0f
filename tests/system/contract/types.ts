// What the types of the package take, by tsc of several versions; and what they refuse. It is not run.
import { Client, ServiceError, type Cell, type Reply, type Schemas, type Table } from "kldiv";

interface Order { price: number; country: string | null; at: Date; paid?: boolean }
declare const orders: Order[], many: readonly Order[], shared: Uint8Array, file: Blob, halves: { readonly length: number };
const client = new Client("/kldiv", { token: "t", timeout: Infinity, retries: 2 }), group = client.group("g");
const steps = ["input", "target"] as const, shape = [2, 2] as const, cells: readonly Cell[] = [1, "a", true, null, new Date(), 5n];
const signal = new AbortController().signal;

export async function taken(): Promise<Reply<unknown>> {
    await group.reference(orders, { window: "86400s" }, { signal, timeout: 5 });
    await group.observe(many, { timestamp: new Date(), key: null });
    await group.observe({ price: Float32Array.of(1), at: [new Date()], country: ["a"] as const, id: new BigInt64Array(1), cells });
    for (const table of ["x\n1\n", shared, shared.buffer, file, orders] as Table[])
        await group.evaluate(table);
    await group.evaluate("price", { values: [1, new Date(), null] as const }, { timeout: 1 });
    const { loss } = await client.klDiv([[1, 2]] as const, [[1, 2]], { gradient: steps, dim: [0] as const, signal, timeout: 9 });
    const tensor = { data: new Float32Array(4), shape };
    const result = await client.klDiv(tensor, tensor, { gradient: steps, reduction: "sum" });
    for await (const { name, state } of client.monitors({ state: "critical", limit: 5 }))
        console.log(name, state satisfies Schemas["State"], loss, result.loss.data[0]);
    for await (const { from } of client.events({ since: new Date() }))
        console.log(from);
    for await (const { kl } of group.windows("x", { from: new Date(), cursor: "c" }, { signal }))
        console.log(kl);
    const metrics: string = await client.request("GET", "/metrics");
    const reply = await client.reply("GET", "/monitors/{group}", { path: { group: metrics } });
    const names: string[] = reply.data.monitors.map(({ name }) => name), etag: string | null = reply.headers.get("etag");
    console.log(names, etag, await client.text("/metrics"), new ServiceError(503, "http_503", "d", { retryAfter: 1 }).retryAfter);
    return reply;
}

export const refused = (): unknown[] => [
    // @ts-expect-error a promise is no table
    group.observe(Promise.resolve(orders)),
    // @ts-expect-error nor is a Map
    group.observe(new Map([["x", [1]]])),
    // @ts-expect-error a column is an array
    group.observe({ x: 5 }),
    // @ts-expect-error a cell is no function
    group.observe({ x: [() => 1] }),
    // @ts-expect-error tensors and arrays do not mix
    client.klDiv({ data: new Float32Array(1), shape: [1] }, [1]),
    // @ts-expect-error there is no such option
    new Client("/", { tokn: "t" }),
];
