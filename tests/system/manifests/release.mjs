// Holds the folder of a release against its lists: CycloneDX's schema, each file with its sum, npm's packages of the pages.
//
// usage: node release.mjs FOLDER
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Ajv from "ajv";

const folder = process.argv[2], here = dirname(fileURLToPath(import.meta.url));
const problems = [];
const must = (good, what) => good || problems.push(what);
const readJson = (...names) => JSON.parse(readFileSync(join(...names), "utf8"));
const schema = (name) =>
    readJson(here, "node_modules/@cyclonedx/cyclonedx-library/res/schema", `${name}.SNAPSHOT.schema.json`);

const names = readdirSync(folder), lists = names.filter((name) => name.endsWith(".cdx.json"));
must(lists.length === 1, `lists: ${lists}`);
const bom = readJson(folder, lists[0]);
const ajv = new Ajv.default({ allErrors: true, strict: false, validateFormats: false });
for (const other of ["spdx", "jsf-0.82", "cryptography-defs"])
    ajv.addSchema(schema(other), `http://cyclonedx.org/schema/${other}.SNAPSHOT.schema.json`);
const isValid = ajv.compile(schema("bom-1.6"));
if (!isValid(bom))
    for (const { instancePath, message, params } of isValid.errors)
        problems.push(`${lists[0]}${instancePath} ${message} ${JSON.stringify(params)}`);

const { components = [], externalReferences = [] } = bom.metadata?.component ?? {};
const listed = new Map([...components.map(({ name, hashes }) => [name, hashes]),
                        ...externalReferences.map(({ url, hashes }) => [url, hashes])]);
for (const name of names.filter((name) => !["SHA256SUMS", "NOTES.md", lists[0]].includes(name))) {
    const sum = createHash("sha256").update(readFileSync(join(folder, name))).digest("hex");
    must(listed.get(name)?.some(({ content }) => content === sum), `${name} is not listed with its sum`);
}
must([...listed.keys()].every((name) => names.includes(name)), `files are listed that are not there: ${[...listed.keys()]}`);

const packages = new Map((bom.components ?? []).map((one) => [one.name, one]));
for (const [path, { version, integrity }] of Object.entries(readJson(here, "../../../api/web/package-lock.json").packages)) {
    const one = packages.get(path.split("node_modules/").pop());
    if (path)
        must(one?.version === version && one.hashes?.[0].content ===
             Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex"), `${path} is not listed`);
}
must(packages.get("uplot")?.scope === "required" && packages.get("esbuild")?.scope === "excluded", "scopes");
must(packages.has("gcc-12") || packages.has("gcc"), "no compiler is listed");
problems.forEach((problem) => console.error(problem));
process.exit(problems.length > 0 ? 1 : 0);
