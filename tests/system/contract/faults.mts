// What went wrong with the package of TypeScript, or could: each case by itself, all that fail are told.
// usage: node faults.mjs URL
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { createContext, runInContext } from "node:vm";
import * as kldiv from "kldiv";

const { Client, ServiceError } = kldiv;
const url = process.argv[2]!, client = new Client(url);
const cases: [string, () => unknown][] = [];
const test = (name: string, run: () => unknown) => cases.push([name, run]);
const any = (value: unknown): any => value;

async function refused(call: () => Promise<unknown>): Promise<kldiv.ServiceError> {
    let promise;
    try {
        promise = call();
    } catch (error) {
        assert.fail(`it throws: ${error}`);
    }
    return promise.then((value) => assert.fail(`it succeeds: ${inspect(value)}`), (error) => {
        assert(error instanceof ServiceError, `${error?.name}: ${error?.message}`);
        assert.doesNotMatch(`${error.message} ${error.detail}`, /\[object|undefined|: null/);
        return error;
    });
}

async function typeError(call: () => Promise<unknown>, pattern: RegExp): Promise<void> {
    const promise = (() => {
        try {
            return call();
        } catch (error) {
            return assert.fail(`it throws: ${error}`);
        }
    })();
    await assert.rejects(promise, (error: Error) => {
        assert(error instanceof TypeError, `${error?.name}: ${error?.message}`);
        assert.match(error.message, pattern);
        return true;
    });
}

/** A client whose requests come back to the test. */
function spy(answer: () => Response = () => new Response('{"loss":0,"monitors":[],"windows":[],"next":null}'), options: object = {}) {
    const sent: { url: string; method: string; headers: Headers; body: string; signal: AbortSignal }[] = [];
    const fetch = any(async (to: URL, init: any) => {
        const request = new Request("http://spy/", { method: "POST", body: init.body ?? "" });
        sent.push({ url: String(to), method: init.method, headers: new Headers(init.headers), body: await request.text(), signal: init.signal });
        return answer();
    });
    return { sent, client: new Client("http://host", { fetch, ...options }) };
}

async function serving(listener: RequestListener, run: (url: string) => Promise<void>): Promise<void> {
    const server = createServer(listener).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
        await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
        server.closeAllConnections();
        server.close();
    }
}

// Nothing stored, no error.
const bytes = (text: string) => new TextEncoder().encode(text), csv = "x\n1\n2\n";
const shared = (text: string) => {
    const view = new Uint8Array(new SharedArrayBuffer(text.length));
    view.set(bytes(text));
    return view;
};
const foreign = runInContext("({ buffer: new Uint8Array([120, 10, 49, 10, 50, 10]).buffer, column: new Float64Array([1, 2]), "
                             + "rows: [{ x: 1 }, { x: 2 }] })", createContext());
for (const [name, table] of Object.entries({
    text: csv, bytes: bytes(csv), ArrayBuffer: bytes(csv).buffer, Blob: new Blob([csv]), DataView: new DataView(bytes(csv).buffer),
    SharedArrayBuffer: shared(csv).buffer, "a view of a SharedArrayBuffer": shared(csv), "another realm's ArrayBuffer": foreign.buffer,
}))
    test(`a table that is ${name} is sent as its bytes`, async () => {
        const { client, sent } = spy();
        await client.group("g").observe(any(table));
        assert.equal(sent[0]!.body, csv);
    });
const columns = { columns: { x: [1, 2] } };
for (const [name, table] of Object.entries({
    columns: { x: [1, 2] }, rows: [{ x: 1 }, { x: 2 }], "another realm's rows": foreign.rows,
    "rows of a class": [new (class { x = 1; })(), new (class { x = 2; })()],
}))
    test(`a table that is ${name} is sent`, async () => {
        const { client, sent } = spy();
        await client.group("g").observe(any(table));
        assert.deepEqual(JSON.parse(sent[0]!.body), columns);
    });
class Getter { get x() { return 1; } }
for (const [table, pattern] of [
    [new ReadableStream(), /ReadableStream/], [new FormData(), /FormData/], [new Map([["x", [1]]]), /Map/], [new Set([1]), /Set/],
    [Promise.resolve({ x: [1] }), /Promise/], [new Date(), /Date/], [/x/, /RegExp/], [(function* () {})(), /Generator/], [null, /null/],
    [undefined, /undefined/], [7, /number/], [() => [], /function/], [Float64Array.of(1), /Float64Array/], [new Getter(), /Getter/],
    [new Response("x"), /Response/], [{ x: new Map() }, /'x'.*Map/], [{ x: "abc" }, /'x'.*string/], [{ x: 5 }, /'x'.*number/],
    [{ x: [() => 1] }, /'x'.*function/], [{ x: [Symbol()] }, /'x'.*symbol/], [[[1, 2]], /row 0.*Array/], [[new Map()], /row 0.*Map/],
    [[1], /row 0.*number/], [[null], /row 0.*null/], [[{ x: 1 }, new Getter()], /row 1.*Getter/],
] as [unknown, RegExp][])
    for (const verb of ["observe", "reference", "evaluate"] as const)
        test(`${verb} of ${inspect(table)} is a TypeError`, () => {
            const { client, sent } = spy();
            return typeError(() => client.group("g")[verb](any(table)), pattern).then(() => assert.equal(sent.length, 0));
        });
test("a key that is null is none", async () => {
    const { client, sent } = spy();
    await client.group("g").observe({ x: [1] }, { key: any(null), timestamp: any(null) });
    assert.equal(sent[0]!.headers.get("idempotency-key"), null);
    assert.equal(sent[0]!.url, "http://host/monitors/g/observations");
});
test("windows begin where a cursor says", async () => {
    const group = client.group("cursor");
    await group.reference({ x: [1, 2, 3] });
    for (let day = 1; day < 6; day++)
        await group.observe({ x: [day] }, { timestamp: `2026-01-0${day}T00:00:00Z` });
    const { next } = await client.request("GET", "/monitors/{group}/{name}/windows",
                                          { path: { group: "cursor", name: "x" }, query: { limit: 2 } });
    const left: unknown[] = [];
    for await (const { window } of group.windows("x", { limit: 1, cursor: next! }))
        left.push(window!.start.slice(0, 10));
    assert.deepEqual(left, ["2026-01-03", "2026-01-02", "2026-01-01"]);
});
const ids = Array.from({ length: 120 }, (_, i) => 2n ** 53n + BigInt(i % 3));
for (const [name, table] of Object.entries({
    columns: { id: BigInt64Array.from(ids) }, "unsigned columns": { id: BigUint64Array.from(ids) }, arrays: { id: ids },
    rows: ids.map((id) => ({ id })),
}))
    test(`whole numbers above 2^53 in ${name} stay apart`, async () => {
        const { monitors: [monitor] } = await client.group("ids").reference(table, { method: "labels" });
        assert.deepEqual(any(monitor!.bins).labels, ["9007199254740992", "9007199254740993", "9007199254740994"]);
    });
test("small whole numbers of 64 bits are numbers", async () => {
    const { client, sent } = spy();
    await client.group("g").observe({ x: [1n, -5n], y: ["a", "b"] });
    assert.deepEqual(JSON.parse(sent[0]!.body), { columns: { x: [1, -5], y: ["a", "b"] } });
});
test("float32 is what it was made of, as bytes and beside texts", async () => {
    const tenths = Array.from({ length: 500 }, (_, i) => (i % 37) / 10), texts = tenths.map((x) => (x > 2 ? "a" : "b"));
    const group = client.group("tenths");
    await group.reference({ x: tenths, texts });
    for (const table of [{ x: Float32Array.from(tenths) }, { x: Float32Array.from(tenths), texts }] as kldiv.Table[])
        for (const { kl } of (await group.evaluate(table)).monitors)
            assert.equal(kl, 0);
});

// Redirects.
for (const status of [301, 302, 303, 307, 308])
    test(`a write is not repeated where ${status} points to`, () => serving((request, response) => {
        assert(request.url!.startsWith("/old/"));
        response.writeHead(status, { Location: `/new${request.url}` }).end();
    }, async (url) => {
        for (const call of [() => new Client(`${url}/old`).group("g").observe({ x: [1] }), () => new Client(`${url}/old`).klDiv([1], [1])]) {
            const error = await refused(call);
            assert.deepEqual([error.code, error.status], ["redirected", status]);
            assert.match(error.message, /POST http:.*\/old\//);
            assert.match(error.message, /http:.*\/new\/old\//);
        }
    }));
test("a write that was redirected is an error", async () => {
    const answer = () => Object.defineProperty(new Response("{}"), "redirected", { value: true });
    assert.equal((await refused(() => spy(answer).client.klDiv([1], [1]))).code, "redirected");
});
test("a read goes where it is pointed to", () => serving((request, response) => {
    if (request.url === "/groups")
        response.writeHead(302, { Location: "/there" });
    response.end('{"groups":[{"group":"a"}],"next":null}');
}, async (url) => {
    for await (const { group } of new Client(url).groups())
        assert.equal(group, "a");
}));

// What ended the process, or was another error.
test("a tensor over a SharedArrayBuffer", async () => {
    const data = new Float64Array(new SharedArrayBuffer(16));
    data.set([-1, -0.5]);
    const { loss } = await client.klDiv({ data, shape: [2] }, { data: Float64Array.of(0.5, 0.5), shape: [2] }, { reduction: "sum" });
    assert(Math.abs(loss.data[0]! - (0.75 + Math.log(0.5))) < 1e-15);
    assert.equal(data[0], -1);
});
test("columns over a SharedArrayBuffer", async () => {
    const { monitors } = await client.group("shared").reference({ x: new Float64Array(new SharedArrayBuffer(80)) });
    assert.equal(monitors.length, 1);
});
test("bigint in JSON bodies", async () => {
    const { client, sent } = spy();
    await client.klDiv(any([[1n, 2n]]), [[1, 2]]);
    assert.equal(sent[0]!.body, '{"input":[[1,2]],"target":[[1,2]]}');
});
for (const table of [Object.fromEntries([["__proto__", [1, 2, 3]], ["x", [1, 2, 3]]]), [JSON.parse('{"__proto__": 1, "x": 2}')],
                     Object.fromEntries([["__proto__", Float64Array.of(1, 2)], ["x", Float64Array.of(1, 2)]]),
                     Object.fromEntries([["__metadata__", Float64Array.of(1, 2)], ["__proto__", Float64Array.of(1, 2)]])])
    test(`columns named ${Object.keys(Array.isArray(table) ? table[0] : table)} of ${inspect(table)}`, async () => {
        const { monitors } = await client.group("names").reference(any(table), { dry_run: true });
        assert.deepEqual(monitors.map(({ name }) => name), Object.keys(Array.isArray(table) ? table[0] : table));
    });
const tensor = { data: Float64Array.of(-1, -2), shape: [2] };
for (const [input, target, options, pattern] of [
    [tensor, [1, 2], {}, /target.*Array/], [[1, 2], tensor, {}, /target/], [tensor, null, {}, /target.*null/],
    [tensor, tensor, { weight: [1, 2] }, /weight.*Array/], [[1], [1], { mask: tensor }, /mask/],
    [tensor, { data: [1, 2], shape: [2] }, {}, /target.*Array/],
] as [any, any, any, RegExp][])
    test(`klDiv(${inspect(input)}, ${inspect(target)}, ${inspect(options)})`, () => typeError(() => client.klDiv(input, target, options), pattern));
test("a flat typed array is a list of numbers", async () => {
    const { loss } = await client.klDiv(any(Float64Array.of(-1, -0.5)), any(Float64Array.of(0.5, 0.5)), { reduction: "sum" });
    assert(Math.abs(Number(loss) - (0.75 + Math.log(0.5))) < 1e-15);
});

// Errors.
const html = "<html><head><style>p {}</style><title>Sign in</title></head><body><p>Please sign in</p></body></html>";
for (const body of ["", "null", "[]", "5", '"text"', "{}", '{"error":{"message":"no upstream"}}', '{"detail":{"a":1},"code":7,"errors":"x"}',
                    '{"detail":[{"msg":"field required"}]}', '{"errors":[null,"x"]}', '{"message":"no route"}', html, "{\"detail\":", "\0\x01\xff"])
    for (const status of [400, 404, 413, 502, 503])
        test(`${status} with ${body}`, async () => {
            const { client } = spy(() => new Response(body, { status, headers: { "Retry-After": "7" } }));
            for (const call of [() => client.group("g").observe({ x: [1] }), () => client.klDiv(tensor, tensor), () => client.klDiv([1], [1]),
                                () => client.group("g").windows("x").next(), () => client.group("g").delete()]) {
                const error = await refused(call);
                assert.deepEqual([error.status, error.code, error.retryAfter, error.pointer], [status, `http_${status}`, 7, undefined]);
                assert.match(error.url, /^[A-Z]+ http:\/\/host\//);
                assert(error.detail.length > 0 && error.detail.length < 300);
                if (body === html)
                    assert.match(error.message, /Sign in Please sign in/);
                if (body.includes("field"))
                    assert.match(error.message, /field required/);
            }
        });
for (const body of ["", "null", "[]", "5", '"text"', "{}", html, "ok", "{\"loss\":", "\0\x01\xff", "a".repeat(99)])
    test(`200 with ${body}`, async () => {
        const { client } = spy(() => new Response(body, { headers: { "Content-Type": body === html ? "text/html" : "text/plain" } }));
        const calls: (() => Promise<unknown>)[] = [() => client.group("g").observe({ x: [1] }), () => client.group("g").reference({ x: [1] }), () => client.klDiv(tensor, tensor),
                       () => client.group("g").evaluate({ x: [1] }), () => client.klDiv([1], [1]), () => client.group("g").windows("x").next(),
                       () => client.events().next(), () => client.group("g").monitors()];
        if (body !== "{}")
            calls.push(() => client.group("g").summary());
        if (body === html)
            calls.push(() => client.text("/metrics"));
        for (const call of calls)
            assert.equal((await refused(call)).code, "unreadable");
    });
test("204 where a response is expected", async () => {
    const { client } = spy(() => new Response(null, { status: 204 }));
    for (const call of [() => client.group("g").observe({ x: [1] }), () => client.klDiv([1], [1]), () => client.klDiv(tensor, tensor)])
        assert.equal((await refused(call)).code, "unreadable");
    assert.equal(await client.group("g").delete(), undefined);
});
test("without a server, the cause of the cause", async () => {
    let gone = "";
    await serving(() => {}, async (url) => {
        gone = url.replace("//", "//me:secret@");
    });
    const error = await refused(() => new Client(gone).request("GET", "/groups"));
    assert.deepEqual([error.status, error.code], [0, "unreachable"]);
    assert.match(error.message, /ECONNREFUSED/);
    assert.doesNotMatch(inspect(error) + error.message, /secret/);
});
test("Retry-After as a date", async () => {
    const at = new Date(Date.now() + 90_000).toUTCString();
    const error = await refused(() => spy(() => new Response("", { status: 503, headers: { "Retry-After": at } })).client.klDiv([1], [1]));
    assert(error.retryAfter! > 80 && error.retryAfter! < 91);
});

// What is no JSON object.
test("metrics, JSON as text, and bare infinities", async () => {
    assert.match(await client.request("GET", "/metrics"), /^kldiv_build_info/m);
    assert.match(await client.text("/metrics"), /^kldiv_build_info/m);
    await client.group("text").reference({ x: [1, 2, 3] });
    await client.group("text").observe({ x: [1] });
    const path = { group: "text", name: "x" };
    assert.match(await client.text("/monitors/{group}/{name}/windows", { path, query: { limit: 1 } }), /^{"windows":/);
    const input = { name: "input", datatype: "FP64" as const, shape: [2], data: ["-Infinity", -1] as any };
    const { outputs } = any(await client.request("POST", "/v2/models/kl_div/infer", {
        body: { inputs: [input, { ...input, name: "target", data: [0.5, 0.5] }], parameters: { reduction: "none" } } as any,
    }));
    assert.deepEqual(outputs[0].data[0], Infinity);
    const { client: bare } = spy(() => new Response('{"a":[NaN,-Infinity,"NaN \\" Infinity",1]}'));
    assert.deepEqual(await bare.request("GET", "/v2"), { a: [NaN, -Infinity, 'NaN " Infinity', 1] });
});

// Time limits and signals.
for (const timeout of [1, 0.5, 1e3 + 0.1, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 1e20, Infinity])
    test(`a timeout of ${timeout}`, async () => {
        const answer = () => new Response('{"groups":[],"next":null}');
        const { client, sent } = spy(answer, { timeout, fetch: async (_: unknown, { signal }: { signal: AbortSignal }) => {
            await new Promise((resolve) => setTimeout(resolve, 20));
            if (signal?.aborted)
                throw signal.reason;
            return answer();
        } });
        if (timeout < 20)
            assert.match((await refused(() => client.request("GET", "/groups"))).detail, /TimeoutError/);
        else
            await client.request("GET", "/groups");
        assert.equal(sent.length, 0);
    });
for (const timeout of [NaN, -1, "5" as any])
    test(`a timeout of ${timeout} is a TypeError`, async () => {
        assert.throws(() => new Client(url, { timeout }), TypeError);
        await typeError(() => client.request("GET", "/groups", { timeout }), /timeout/);
    });
test("each method takes a signal and a timeout", () => serving(() => {}, async (url) => {
    const group = new Client(url).group("g"), waiting = new Client(url), table = { x: [1] };
    const calls: ((control: kldiv.Control) => Promise<unknown>)[] = [
        (c) => group.reference(table, {}, c), (c) => group.observe(table, c), (c) => group.evaluate(table, c),
        (c) => group.evaluate("x", { values: [1] }, c), (c) => group.monitors(c), (c) => group.summary({}, c),
        (c) => group.windows("x", {}, c).next(), (c) => group.events("x", {}, c).next(), (c) => group.notes({}, c).next(),
        (c) => group.latest("x", c), (c) => group.settings({ fire_after: 1 }, c), (c) => group.mute({ seconds: 1 }, c), (c) => group.unmute(c),
        (c) => group.delete(c), (c) => waiting.klDiv([1], [1], c), (c) => waiting.klDiv(tensor, tensor, c), (c) => waiting.groups({}, c).next(),
        (c) => waiting.events({}, c).next(), (c) => waiting.monitors({}, c).next(), (c) => waiting.request("GET", "/groups", c),
    ];
    await Promise.all(calls.map(async (call, i) => {
        assert.match((await refused(() => call({ timeout: 30 }))).message, /TimeoutError/, `${i}`);
        const leaving = new AbortController();
        setTimeout(() => leaving.abort(), 30);
        await assert.rejects(call({ signal: leaving.signal }), { name: "AbortError" }, `${i}`);
        assert.match((await refused(() => call({ signal: new AbortController().signal, timeout: 30 }))).message, /TimeoutError/, `${i}`);
    }));
}));
for (const date of [new Date(NaN), new Date("x")])
    test("an invalid date rejects", async () => {
        const group = client.group("g");
        for (const call of [() => group.observe({ x: [1] }, { timestamp: date }), () => group.summary({ from: date }),
                            () => group.windows("x", { to: date }).next(), () => client.request("POST", "/groups/{group}/notes",
                                { path: { group: "g" }, body: { text: "t", at: date } as any })])
            await typeError(call, /Date is invalid/);
    });
test("dates among values are seconds", async () => {
    const { client, sent } = spy(() => new Response('{"verdict":"ok"}'));
    await client.group("g").evaluate("x", { values: [new Date(5000), 5] });
    assert.equal(sent[0]!.body, '{"values":[5,5]}');
});

// Secrets and addresses.
test("neither token nor password is shown", () => {
    for (const shown of [new Client("http://me:secret@host/x/", { token: "secret" }), new Client(url, { token: "secret" }).group("g")])
        assert.doesNotMatch(inspect(shown, { depth: 9, showHidden: true }) + JSON.stringify(shown), /secret/);
    assert.equal(new Client("http://me:secret@host/x/").url, "http://host/x");
});
test("a password goes as Basic, a token of a file without its line's end", async () => {
    const sent: unknown[] = [], fetch = any(async (to: URL, { headers }: { headers: Headers }) => {
        sent.push(String(to), headers.get("authorization"));
        return new Response("{}");
    });
    await new Client("http://me:p%C3%A4ss@host/x", { fetch }).request("GET", "/livez");
    await new Client("http://host/x", { fetch, token: "secret\n" }).request("GET", "/livez");
    assert.deepEqual(sent, ["http://host/x/livez", `Basic ${Buffer.from("me:päss").toString("base64")}`, "http://host/x/livez", "Bearer secret"]);
    assert.throws(() => new Client(url, { token: "a\nsecret" }), (error: Error) => error instanceof TypeError && !error.message.includes("secret"));
});
for (const address of ["localhost:8080", "/kldiv", "", "ftp://x", "http://"])
    test(`'${address}' is no address outside of a page`, () => assert.throws(() => new Client(address), TypeError));
test("a path is an address in a page", () => {
    any(globalThis).location = { href: "https://shop.example/admin/index.html" };
    try {
        assert.equal(new Client("/kldiv/").url, "https://shop.example/kldiv");
    } finally {
        delete any(globalThis).location;
    }
});
for (const name of ["a/b", "%2F", "x y", "?", "#", "a?b#c", "ü", "日本", "..x", "%2e%2e", "a\\b", ";", "+"])
    test(`a group named ${name}`, async () => {
        await client.group(name).reference({ [name]: [1, 2] });
        const { monitors: [monitor] } = await client.group(name).monitors();
        assert.deepEqual([monitor!.group, monitor!.name], [name, name]);
        await client.group(name).delete();
    });
for (const name of ["", ".", "..", "\ud800"])
    test(`a group named ${inspect(name)} is a TypeError`, () => typeError(() => client.group(name).monitors(), /name/));

// Headers, lists, repeats.
test("headers of responses, and 304", async () => {
    await client.group("etag").reference({ x: [1, 2] });
    const path = { group: "etag" }, first = await client.reply("GET", "/monitors/{group}", { path });
    const headers = { "If-None-Match": first.headers.get("etag")! };
    assert.deepEqual([first.status, first.data.monitors.length], [200, 1]);
    assert.equal((await client.reply("GET", "/monitors/{group}", { path, headers })).status, 304);
    assert.equal((await refused(() => client.request("GET", "/monitors/{group}", { path, headers }))).status, 304);
});
test("lists of all pages", async () => {
    for (let i = 0; i < 3; i++) {
        await client.group(`list ${i}`).reference({ x: [1, 2] });
        await client.request("POST", "/groups/{group}/notes", { path: { group: "list 0" }, body: { text: `n${i}` } });
    }
    const names = new Set<string>(), notes: string[] = [];
    for await (const { group } of client.groups({ limit: 1, q: "list" }))
        names.add(group);
    for await (const { text } of client.group("list 0").notes({ limit: 1 }))
        notes.push(text);
    assert.deepEqual([names.size, notes.sort()], [3, ["n0", "n1", "n2"]]);
});
for (const [options, call, n] of [
    [{ retries: 3 }, (c: kldiv.Client) => c.group("g").observe({ x: [1] }, { key: "k" }), 3], [{ retries: 3 }, (c: kldiv.Client) => c.request("GET", "/livez"), 3],
    [{ retries: 3 }, (c: kldiv.Client) => c.group("g").observe({ x: [1] }), 1], [{}, (c: kldiv.Client) => c.group("g").observe({ x: [1] }, { key: "k" }), 1],
    [{ retries: 1 }, (c: kldiv.Client) => c.request("GET", "/livez"), 2],
] as [object, (c: kldiv.Client) => Promise<unknown>, number][])
    test(`${call} by ${inspect(options)} is sent ${n} times`, async () => {
        let left = 2;
        const { client, sent } = spy(() => (left-- > 0 ? new Response("", { status: 503, headers: { "Retry-After": "0" } }) : new Response('{"monitors":[]}')), options);
        await call(client).catch(() => {});
        assert.equal(sent.length, n);
    });

// How it is named by browsers, and how it is loaded.
test("files as browsers name them", async () => {
    for (const type of ["application/vnd.ms-excel", "text/csv", "text/plain", "", "application/x-zip-compressed"]) {
        const { monitors } = await client.group("file").reference(new File(["x,y\n1,a\n2,b\n"], "table.csv", { type }));
        assert.deepEqual(monitors.map(({ name }) => name), ["x", "y"], type);
    }
});
test("require gives what import gives", () => {
    const required = createRequire(import.meta.url)("kldiv");
    assert.deepEqual(Object.keys(required).sort(), Object.keys(kldiv).sort());
    assert.equal(new required.Client(url).url, url);
});

let failed = 0;
for (const [name, run] of cases)
    try {
        await run();
    } catch (error) {
        failed++;
        console.error(`FAIL  ${name.replace(/\s+/g, " ").slice(0, 150)}: ${(error as Error).message.slice(0, 400)}`);
    }
console.log(`${cases.length - failed} of ${cases.length} cases of the package of TypeScript hold`);
process.exitCode = failed ? 1 : 0;
