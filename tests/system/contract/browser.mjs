// The package of TypeScript in Chromium, on a page of another origin, without a bundler.
// usage: node browser.mjs FOLDER_WITH_NODE_MODULES URL
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";

const [folder, url] = process.argv.slice(2);
const page = `<!doctype html><body>
<script type="importmap">{"imports": {"kldiv": "/node_modules/kldiv/dist/esm/index.js"}}</script>
<script type="module">
    import { Client } from "kldiv";
    const client = new Client("${url}"), shape = [2, 2];
    const x = { data: Float32Array.of(-1, -0.5, -2, -0.25), shape }, t = { data: Float32Array.of(0.25, 0.75, 0.5, 0.5), shape };
    const { loss } = await client.klDiv(x, t, { reduction: "batchmean" });
    const error = await client.group("none").observe({ x: [1, null] }, { key: "k" }).catch(({ code }) => code);
    document.body.textContent = loss.data[0] + " " + error;
</script>`;

const server = createServer(async ({ url: path }, response) => {
    const is_script = path.endsWith(".js");
    response.setHeader("Content-Type", is_script ? "text/javascript" : "text/html");
    response.end(is_script ? await readFile(join(folder, path)) : page);
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const { stdout } = await promisify(execFile)("chromium-headless-shell", [
    "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom", `http://127.0.0.1:${server.address().port}/`,
], { timeout: 60_000 });
server.close();
assert.match(stdout, /<body>0\.247258\d* (group|monitor)_not_found<\/body>/);
