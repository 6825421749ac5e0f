// The functions that @hey-api/openapi-ts makes: losses, inferences, monitors, and their errors.
import assert from "node:assert/strict";
import { client } from "./generated/hey_api/client.gen.js";
import { infer, klDiv, listWindows, observe, putMonitor } from "./generated/hey_api/sdk.gen.js";

client.setConfig({ baseUrl: process.argv[2] });
const input = [[-1, -0.5], [-2, -0.25]], target = [[0.25, 0.75], [0.5, 0.5]];
const expected = 0.247258;

const good = await klDiv({ body: { input, target }, query: { reduction: "batchmean" } });
assert(typeof good.data?.loss === "number");
assert(Math.abs(good.data.loss - expected) < 1e-6);
assert.deepEqual(good.data.warnings, []);

const rows = await klDiv({
    body: { input, target },
    query: { reduction: "none", dim: [-1], gradient: ["input", "target"] },
});
assert.deepEqual(rows.data?.shape, [2]);
assert.deepEqual(rows.data.gradient?.input, [[-0.25, -0.75], [-0.5, -0.5]]);

const wrong = await klDiv({ body: { input, target: [[1]] } });
assert.equal(wrong.response.status, 422);
assert(wrong.error?.code === "shape_mismatch");

const inference = await infer({
    body: {
        inputs: [
            { name: "input", datatype: "FP64", shape: [2, 2], data: input },
            { name: "target", datatype: "FP64", shape: [2, 2], data: target },
        ],
        parameters: { reduction: "batchmean" },
    },
});
const output: number | undefined = inference.data?.outputs[0]?.data?.[0];
assert(output !== undefined && Math.abs(output - expected) < 1e-6);

const path = { group: "hey-api", name: "od280/od315" };
await putMonitor({
    path,
    body: { bins: { edges: [0, 1, 2] }, reference: { counts: [5, 5] } },
    throwOnError: true,
});
const observed = await observe({ path, body: { counts: [10, 90] } });
assert.equal(observed.data?.top[0], "[0, 1)");
const history = await listWindows({ path });
assert.equal(history.data?.windows[0]?.n, 100);
