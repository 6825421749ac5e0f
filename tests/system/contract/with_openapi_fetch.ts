// openapi-fetch with the types of openapi-typescript: losses, inferences, monitors, and their errors.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const input = [[-1, -0.5], [-2, -0.25]], target = [[0.25, 0.75], [0.5, 0.5]];
const expected = 0.247258;

const good = await client.POST("/kl_div", { body: { input, target, reduction: "batchmean" } });
assert(typeof good.data?.loss === "number");
assert(Math.abs(good.data.loss - expected) < 1e-6);
assert.deepEqual(good.data.warnings, []);

const rows = await client.POST("/kl_div", {
    params: { query: { reduction: "none", dim: [-1], gradient: ["input"], diagnose: true } },
    body: { input: [[0, "-Infinity"]], target: [[1, 0]], compat: "math", mask: [true] },
});
assert.deepEqual(rows.data?.loss, [0]);
assert.deepEqual(rows.data.gradient?.input, [[-1, -0]]);

const part = await client.POST("/kl_div", { body: { input, target, reduction: "batchmean", partial: true } });
assert(part.data?.sum && part.data.divisor);
assert(Math.abs(Number(part.data.sum[0]) / Number(part.data.divisor[0]) - expected) < 1e-6);

const wrong = await client.POST("/kl_div", { body: { input, target: [[1]] } });
assert.equal(wrong.response.status, 422);
assert.equal(wrong.error?.code, "shape_mismatch" satisfies components["schemas"]["Problem"]["code"]);

const operand = (name: "input" | "target", data: number[][]) =>
    ({ name, datatype: "FP64" as const, shape: [2, 2], data });
const inference = await client.POST("/v2/models/kl_div/infer", {
    params: { query: { reduction: "batchmean" } },
    body: { inputs: [operand("input", input), operand("target", target)] },
});
const output: number | undefined = inference.data?.outputs[0]?.data?.[0];
assert(output !== undefined && Math.abs(output - expected) < 1e-6);

const refused = await client.POST("/v2/models/kl_div/infer", {
    body: { inputs: [operand("input", input)], parameters: { reduction: "sum" } },
});
assert.equal(refused.response.status, 422);
assert.match(refused.error?.error ?? "", /target/);

const health = await client.GET("/readyz");
assert.equal(health.data?.status, "ok");
const stats = await client.GET("/v2/models/stats");
assert((stats.data?.model_stats[0]?.inference_stats.success.count ?? 0) >= 1);

const path = { group: "wine", name: "od280/od315" };
const made = await client.PUT("/monitors/{group}/{name}", {
    params: { path },
    body: { bins: { edges: [0, 1, 2] }, reference: { counts: [500, 500] } },
});
assert.equal(made.response.status, 201);
assert.equal(made.data?.name, "od280/od315");
const observed = await client.POST("/monitors/{group}/{name}/observations", {
    params: { path, header: { "Idempotency-Key": "one" } },
    body: { counts: [10, 90], timestamp: "2025-01-31T12:00:00Z" },
});
assert.equal(observed.data?.verdict, "critical" satisfies components["schemas"]["State"]);
assert.equal(observed.data.top[0], "[0, 1)");
const listed = await client.GET("/monitors", { params: { query: { state: "critical", group: "wine" } } });
assert.equal(listed.data?.monitors[0]?.last_observation, "2025-01-31T12:00:00Z");
const history = await client.GET("/monitors/{group}/{name}/windows", { params: { path } });
assert.equal(history.data?.windows[0]?.n, 100);
const absent = await client.GET("/monitors/{group}/{name}/windows/{window}", {
    params: { path: { ...path, window: "current" } },
});
assert.equal(absent.error?.code, "window_not_found" satisfies components["schemas"]["Problem"]["code"]);
