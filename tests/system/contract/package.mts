// The package of api/clients/typescript as it is installed from its tarball: values over sockets, and types, by
// tsc --strict.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client, ServiceError, type Schemas } from "kldiv";

const client = new Client(process.argv[2]!);
const nested = { input: [[-1, -0.5], [-2, -0.25]], target: [[0.25, 0.75], [0.5, 0.5]] };
const expected = 0.247258;

async function refused(call: Promise<unknown>): Promise<ServiceError> {
    return call.then(() => assert.fail("it succeeded"), (error) => {
        assert(error instanceof ServiceError);
        return error;
    });
}

// The loss, as JSON.
const loss = await client.klDiv(nested.input, nested.target, { reduction: "batchmean", gradient: ["input"] });
assert(typeof loss.loss === "number" && Math.abs(loss.loss - expected) < 1e-6);
assert.deepEqual(loss.gradient?.input, [[-0.125, -0.375], [-0.25, -0.25]]);
const infinite = await client.klDiv([-Infinity, -1], [0.5, 0.5], { reduction: "none", mask: [true, true] });
assert.equal((infinite.loss as unknown[])[0], "Infinity");

// As bytes: each dtype, weights and masks, gradients, partial results.
const shape = [2, 2];
for (const kind of [Float32Array, Float64Array]) {
    const x = { data: new kind(nested.input.flat()), shape }, t = { data: new kind(nested.target.flat()), shape };
    const { loss, tensors, reduction, warnings } = await client.klDiv(x, t, { reduction: "batchmean", gradient: ["input", "target"] });
    assert(loss.data instanceof kind && Math.abs(loss.data[0]! - expected) < 1e-6);
    assert.deepEqual([loss.shape, reduction, warnings], [[], "batchmean", []]);
    assert.deepEqual(tensors["gradient.input"], { data: new kind([-0.125, -0.375, -0.25, -0.25]), shape, dtype: loss.dtype });
    const rows = await client.klDiv(x, t, { reduction: "sum", dim: [-1], mask: { data: new Uint8Array([0, 1]), shape: [2] },
                                            weight: { data: new kind([5, 2]), shape: [2] } });
    assert(Math.abs(Number(rows.loss.data[0]) - 2 * (0.5 * (Math.log(0.5) + 2) + 0.5 * (Math.log(0.5) + 0.25))) < 1e-6);
}
// A sparse target: of each row the element that an index names, and the rest as one.
const sparse = await client.klDiv([[-1, -0.5], [-2, -0.25]], [[0.6], [0.1]], { reduction: "sum", indices: [[1], [0]] });
for (const data of [new Int32Array([1, 0]), new BigInt64Array([1n, 0n])]) {
    const named = await client.klDiv({ data: new Float64Array([-1, -0.5, -2, -0.25]), shape },
                                     { data: new Float64Array([0.6, 0.1]), shape: [2, 1] },
                                     { reduction: "sum", tail: "bin", indices: { data, shape: [2, 1] } });
    assert.equal(named.loss.data[0], sparse.loss);
}
const half = { data: new Uint16Array([0xbf80, 0xbf00]), shape: [2], dtype: "BF16" as const }; // -1, -0.5
const halves = await client.klDiv(half, { ...half, data: new Uint16Array([0x3e80, 0x3f40]) }, { reduction: "sum" });
assert(halves.loss.dtype === "BF16" && halves.loss.data.length === 1);
assert.match(halves.warnings.map(({ code }) => code).join(), /^$/);
const part = await client.klDiv(half, half, { partial: true, log_target: true });
assert.deepEqual(part.tensors["sum"]?.shape, [2]);

// Errors have a code that is typed, and a place.
const wrong = await refused(client.klDiv([[-1, -0.5]], [[0.4, null as unknown as number]]));
assert.deepEqual([wrong.status, wrong.code, wrong.pointer], [422, "element_invalid" satisfies typeof wrong.code, "#/target/0/1"]);
assert.match(wrong.message, /^element_invalid: null is not a number/);
assert(wrong.requestId);
const unknown = await refused(client.klDiv({ data: new Float32Array(1), shape: [1] }, { data: new Float32Array(1), shape: [1] },
                                           { reducton: "sum" } as object));
assert.deepEqual([unknown.code, unknown.errors[0]?.parameter], ["option_unknown", "reducton"]);
assert.equal((await refused(new Client("http://127.0.0.1:9").request("GET", "/groups"))).code, "unreachable");
const page = async () => new Response("<html>", { status: 502, statusText: "Bad Gateway" });
assert.equal((await refused(new Client("http://proxy/prefix/", { fetch: page }).request("GET", "/groups"))).code, "http_502");
const text = async () => new Response("ok");
assert.equal((await refused(new Client("http://proxy", { fetch: text }).request("GET", "/groups"))).code, "unreadable");
const late = new Client(process.argv[2]!, { timeout: 50, fetch: (_, init) => new Promise((_, reject) => {
    const keepsNodeAlive = setInterval(() => {
        if (init!.signal!.aborted)
            reject(init!.signal!.reason), clearInterval(keepsNodeAlive);
    }, 10);
}) });
assert.match((await refused(late.group("x").monitors())).detail, /TimeoutError/);
const leaving = new AbortController();
leaving.abort();
await assert.rejects(client.request("GET", "/groups", { signal: leaving.signal }), { name: "AbortError" });

// What is sent: the token, the prefix of a proxy, lists with commas, infinities as texts.
let sent: { url: string; token: string | null; body: unknown } | undefined;
const spy = new Client("https://host/prefix/", { token: "secret", fetch: async (url, init) => {
    sent = { url: String(url), token: new Headers(init?.headers).get("authorization"), body: init?.body };
    return new Response('{"loss":0,"monitors":[]}');
} });
await spy.klDiv([Infinity], [NaN], { dim: [0, 1] });
assert.deepEqual(sent, { url: "https://host/prefix/kl_div", token: "Bearer secret",
                         body: '{"input":["Infinity"],"target":["NaN"],"dim":[0,1]}' });
await spy.group("a/b").reference("x\n1\n", { include: "x" });
assert.equal(sent?.url, "https://host/prefix/monitors/a%2Fb?include=x");

// Monitors: a table in each form, a verdict, windows of all pages, what drifts.
const group = client.group("plants / wine");
const ages = Array.from({ length: 1000 }, (_, i) => i % 50), kinds = ages.map((age) => (age % 2 ? "a" : "b"));
const made = await group.reference({ age: ages, kind: kinds }, { window: "86400s", warning: 0.05, critical: 0.2 });
assert.deepEqual(made.monitors.map(({ name }) => name), ["age", "kind"]);
const at = new Date("2026-01-01T00:00:00Z");
const rows = Array.from({ length: 300 }, (_, i) => ({ age: 45 + (i % 5), kind: i % 3 ? "a" : null }));
for (let i = 0; i < 2; i++) {
    const { monitors } = await group.observe(rows, { timestamp: at, key: "once" });
    const verdict: Schemas["State"] = monitors[0]!.verdict;
    assert.deepEqual([verdict, monitors[0]!.n], ["critical", 300]);
    assert.equal(monitors[1]!.missing_ratio, 1 / 3);
}
await group.observe({ age: new Float64Array(200).fill(7) }, { timestamp: at.getTime() / 1000 + 86400 });
await group.observe("age\n8\n8\n", { timestamp: "2026-01-03T00:00:00Z" });
const sizes: number[] = [];
for await (const { n } of group.windows("age", { limit: 1 }))
    sizes.push(n);
assert.deepEqual(sizes, [2, 200, 300]);
assert.equal((await group.evaluate("age", { values: ages })).verdict, "ok");
assert.equal((await group.evaluate("age", { values: [...ages.slice(0, 99), NaN] })).missing_ratio, 0.01);
for (const table of [{ age: ages, kind: kinds }, ages.map((age, i) => ({ age, kind: kinds[i] })), "age,kind\n1,a\n"]) {
    const { monitors, warnings } = await group.evaluate(table);
    assert.deepEqual([monitors.map(({ name }) => name), monitors[0]!.window, warnings], [["age", "kind"], null, []]);
}
for await (const { n } of group.windows("age", { from: new Date("2026-01-02"), to: new Date("2026-01-03") }))
    assert.equal(n, 200);
assert.equal((await group.latest("age")).bins.length > 2, true);

// Dates are seconds since 1970, in columns, rows and beside typed arrays; one that is none is missing.
const days = Array.from({ length: 100 }, (_, i) => new Date(Date.UTC(2026, 0, 1 + (i * 7) % 50))), noon = days.map(() => 0.5);
await client.group("dates").reference({ day: days, n: Float64Array.from(noon) }, { include: "day,n" });
for (const table of [{ day: days, n: noon }, days.map((day) => ({ day, n: 0.5 }))])
    assert.deepEqual((await client.group("dates").evaluate(table)).monitors.map(({ kl }) => kl), [0, 0]);
const unknownDay = await client.group("dates").evaluate({ day: [new Date(NaN), days[0]!, null, undefined], n: [1, 2, 3, 4] });
assert.equal(unknownDay.monitors[0]!.missing_ratio, 0.75);
assert.deepEqual((await group.summary()).group, "plants / wine");
assert.equal((await group.settings({ thresholds: { critical: 0.5 } })).monitors[0]!.thresholds.critical, 0.5);
assert((await group.mute({ seconds: 60 })).muted.until);
await group.unmute();
const listed = await client.request("GET", "/monitors", { query: { group: group.name, state: "critical" } });
assert(listed.monitors.length > 0 && listed.monitors.every(({ state }) => state === "critical"));
const fixed = { bins: { edges: [0, 1, 2] }, reference: { counts: [5, 5] } };
await client.request("PUT", "/monitors/{group}/{name}", { path: { group: "g", name: "od280/od315" }, body: fixed });
assert.deepEqual((await client.group("g").monitors()).monitors.map(({ name }) => name), ["od280/od315"]);
assert.equal(await group.delete(), undefined);
assert.equal((await refused(group.monitors())).code, "group_not_found");
for (const name of ["", ".", ".."])
    await assert.rejects(client.group(name).delete(), TypeError);

// Whoever packs it alone gets the tools that these tests have.
const toolsOf = (file: string) => JSON.parse(readFileSync(file, "utf8")).devDependencies;
const tools = toolsOf("package.json");
for (const [name, version] of Object.entries(toolsOf("../../../api/clients/typescript/package.json")))
    assert.equal(tools[name], version, name);

// What the types refuse.
export const refusedByTypes = () => [
    // @ts-expect-error there is no such path
    client.request("GET", "/monitor"),
    // @ts-expect-error nor such a method there
    client.request("PUT", "/groups/{group}", { path: { group: "g" } }),
    // @ts-expect-error the path has a parameter
    client.request("GET", "/monitors/{group}"),
    // @ts-expect-error whose name is group
    client.request("GET", "/monitors/{group}", { path: { name: "g" } }),
    // @ts-expect-error there is no such reduction
    client.klDiv([1], [1], { reduction: "avg" }),
    // @ts-expect-error nor such a setting
    group.settings({ treshold: 1 }),
    // @ts-expect-error nested arrays and tensors do not mix
    client.klDiv([1], { data: new Float32Array(1), shape: [1] }),
    // @ts-expect-error 16 bits are of one of two dtypes
    client.klDiv({ data: new Uint16Array(1), shape: [1] }, { data: new Uint16Array(1), shape: [1] }),
    // @ts-expect-error there is no such code
    wrong.code === "shape_mismatched",
];
