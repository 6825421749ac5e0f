// Holds the manifests against the types of Kubernetes (which tsc checks, see run.sh), the rules of Monokle, and
// what this server needs. Renders them by kubectl or kustomize; without either, takes base as it stands.
//
// usage: node kubernetes.mjs FOLDER    (docker/kubernetes; writes generated/*.ts)
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { createDefaultMonokleValidator, processRefs, ResourceParser } from "@monokle/validation";
import { parseAllDocuments, stringify } from "yaml";

const folder = resolve(process.argv[2]);
const problems = [];
const must = (good, what) => good || problems.push(what);

// ---- Rendering

const RENDERERS = [["kubectl", ["kustomize"]], ["kustomize", ["build"]]];

function findRenderer() {
    return RENDERERS.find(([program]) => {
        try {
            execFileSync("sh", ["-c", `command -v ${program}`]);
            return true;
        } catch {
            return false;
        }
    });
}

const parse = (text) => parseAllDocuments(text).map((document) => {
    if (document.errors.length) throw document.errors[0];
    return document.toJS();
});

// Renders overlays with components, as a kustomization of the reader's own would.
function render([program, options], overlay, components) {
    const own = mkdtempSync(join(tmpdir(), "kldiv-"));
    const path = (name) => relative(own, join(folder, name));
    writeFileSync(join(own, "kustomization.yaml"),
        stringify({ resources: [path(overlay)], components: components.map(path) }));
    try {
        return parse(execFileSync(program, [...options, own], { encoding: "utf8" }));
    } finally {
        rmSync(own, { recursive: true });
    }
}

const MONITORING = ["components/monitoring"];
const TOKENS = ["components/tokens"];
const NOTIFY = ["components/notify"];
const MIGRATION = ["components/migration"];
const VARIANTS = { base: ["base", []], sqlite: ["overlays/sqlite", TOKENS], postgres: ["overlays/postgres", MONITORING],
    "with tokens": ["overlays/postgres", [...MONITORING, ...TOKENS]], "with migration": ["overlays/postgres", MIGRATION],
    "with notify": ["overlays/postgres", [...TOKENS, ...NOTIFY]] };

// The folder is copied, as its reader would; `make rules` has made what is made.
function renderExample([program, options]) {
    const own = mkdtempSync(join(tmpdir(), "kldiv-"));
    try {
        cpSync(folder, join(own, "kubernetes"), { recursive: true });
        for (const name of ["tokens", "prometheus"])
            writeFileSync(join(own, "kubernetes/examples", name), "prometheus read 0123456789abcdef0123456789abcdef\n");
        return parse(execFileSync(program, [...options, join(own, "kubernetes/examples")], { encoding: "utf8" }));
    } finally {
        rmSync(own, { recursive: true });
    }
}

function renderAll() {
    const renderer = findRenderer();
    if (renderer)
        return [...Object.entries(VARIANTS).map(([name, how]) => [name, render(renderer, ...how)]),
                ["example", renderExample(renderer)]];
    console.log("(no kubectl or kustomize here: overlays are not looked at)");
    const files = readdirSync(join(folder, "base")).filter((name) => name !== "kustomization.yaml");
    return [["base", files.flatMap((name) => parse(readFileSync(join(folder, "base", name), "utf8")))]];
}

// ---- Types

const PACKAGES = { "monitoring.coreos.com": "@kubernetes-models/prometheus-operator" };

// A literal of the kind's interface: excess members are errors, which no validator of kubernetes-models tells.
function literal(resource, i) {
    const group = resource.apiVersion.split("/")[0];
    const module = `${PACKAGES[group] ?? "kubernetes-models"}/${resource.apiVersion}/${resource.kind}`;
    return `import type { I${resource.kind} as I${i} } from "${module}";\n` +
        `export const r${i}: I${i} = ${JSON.stringify(resource, null, 1)};\n`;
}

// A member misspelt, at two depths: tsc must complain, or the check above checks nothing.
function misspelt(resources) {
    const deployment = resources.find(({ kind }) => kind === "Deployment");
    return ["replicas", "readOnlyRootFilesystem"].map((name, i) =>
        literal(deployment, i).replace(`"${name}":`, `// @ts-expect-error\n"${name}s":`)).join("");
}

function writeTypes(variants) {
    rmSync("generated", { recursive: true, force: true });
    mkdirSync("generated");
    for (const [name, resources] of variants)
        writeFileSync(`generated/${name}.ts`, resources.map(literal).join(""));
    writeFileSync("generated/misspelt.ts", misspelt(variants[0][1]));
}

// ---- What this server needs

const seconds = (container, name) => Number(container.env.find((e) => e.name === name)?.value);

function checkPod(name, deployment) {
    const { metadata, spec: pod } = deployment.spec.template;
    const [container] = pod.containers;
    const delay = seconds(container, "KLDIV_DRAIN_DELAY"), timeout = seconds(container, "KLDIV_DRAIN_TIMEOUT");
    must(pod.terminationGracePeriodSeconds > delay + timeout,
        `${name}: ${pod.terminationGracePeriodSeconds} s are too few to drain ${delay} + ${timeout} s`);
    must(pod.enableServiceLinks === false, `${name}: enableServiceLinks sets KLDIV_PORT`);
    must(deployment.spec.selector.matchLabels["app.kubernetes.io/name"] === metadata.labels["app.kubernetes.io/name"],
        `${name}: the deployment does not select its pods`);
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"])
        must(container[probe]?.httpGet.path === (probe === "readinessProbe" ? "/readyz" : "/livez"), `${name}: ${probe}`);
}

function checkVersion(name, image) {
    const version = /KLDIV_VERSION "(.*)"/.exec(readFileSync("../../../lib/kldiv.h", "utf8"))[1];
    must(image.endsWith(`:${version}`), `${name}: the image is ${image}, the version ${version}`);
}

// An empty selector is every pod of the namespace.
const isEmpty = (selector) => selector && !Object.keys(selector.matchLabels ?? {}).length;

// Links that Monokle does not look for.
function checkLinks(name, of) {
    const scaled = of("HorizontalPodAutoscaler")?.spec.scaleTargetRef, watched = of("ServiceMonitor")?.spec;
    const { metadata, spec } = of("Service");
    must(!scaled || scaled.name === of(scaled.kind)?.metadata.name, `${name}: the autoscaler's target is not there`);
    must(!watched || isDeepStrictEqual(watched.selector.matchLabels, metadata.labels),
        `${name}: the ServiceMonitor does not select the service`);
    for (const { port } of watched?.endpoints ?? [])
        must(spec.ports.some((other) => other.name === port), `${name}: the service has no port ${port}`);
    must(!watched || metadata.labels[watched.jobLabel] === "kldiv", `${name}: the rules want the job kldiv`);
}

// Prometheus selects by a label, and has a token where the server wants one.
function checkMonitoring(name, of) {
    const token = of("Deployment").spec.template.spec.containers[0].env.find((e) => e.name === "KLDIV_AUTH_TOKEN_FILE");
    for (const kind of ["ServiceMonitor", "PrometheusRule"])
        must(!of(kind) || of(kind).metadata.labels.release === "kube-prometheus-stack", `${name}: the ${kind} has no release`);
    for (const { authorization } of of("ServiceMonitor")?.spec.endpoints ?? [])
        must(!token === !authorization, `${name}: the server ${token ? "wants" : "knows"} a token, and the ServiceMonitor has ` +
            (authorization ? "one" : "none"));
}

// Compares what it may connect to with the ports of PostgreSQL and PgBouncer, and both places of DNS.
function checkEgress(name, { spec: { egress } }) {
    const open = new Set(egress.flatMap(({ ports, to = [{}] }) => ports.flatMap(({ port, protocol }) =>
        to.map((peer) => `${protocol} ${port} ${peer.ipBlock?.cidr ?? ""}`.trim()))));
    const wanted = ["TCP 5432", "TCP 6432", ...["UDP", "TCP"].flatMap((p) => [`${p} 53`, `${p} 53 169.254.20.10/32`])];
    must(isDeepStrictEqual([...open].sort(), wanted.sort()), `${name}: it may connect to ${[...open].sort()}`);
}

// The Job connects as servers do, has their image and another address of the store, and no service sends it requests.
function checkMigration(name, resources, of) {
    const job = of("Job"), own = job.spec.template.metadata.labels;
    const policy = resources.find((other) => other.kind === "NetworkPolicy" && other.metadata.name === job.metadata.name);
    const [{ image, args, env }] = job.spec.template.spec.containers, [server] = of("Deployment").spec.template.spec.containers;
    checkEgress(name, policy);
    must(isDeepStrictEqual(policy.spec.podSelector.matchLabels, own), `${name}: the policy is not of the Job`);
    must(Object.entries(of("Service").spec.selector).some(([key, value]) => own[key] !== value), `${name}: the service has the Job`);
    must(image === server.image && isDeepStrictEqual(args, ["--migrate"]), `${name}: ${image} ${args}`);
    must(env[0].name === "KLDIV_STORE" && env[0].valueFrom.secretKeyRef.name === "kldiv-owner", `${name}: the owner's address`);
}

// Each folder of files that are read again is a secret's volume: the kubelet swaps no file that is mounted by subPath.
function checkMounts(name, { spec: { containers: [{ env, volumeMounts = [] }], volumes = [] } }) {
    for (const { name: variable, value } of env.filter((e) => ["KLDIV_AUTH_TOKEN_FILE", "KLDIV_NOTIFY"].includes(e.name))) {
        const mounts = volumeMounts.filter(({ mountPath }) => mountPath === dirname(value));
        must(mounts.length === 1 && !mounts[0].subPath && mounts[0].readOnly, `${name}: ${variable} is not in a mounted folder`);
        must(volumes.some((volume) => volume.name === mounts[0].name && volume.secret), `${name}: ${variable} is no secret`);
    }
}

// What is let through is HTTPS to the internet, Alertmanager where Prometheus is, DNS as for the store; of the same pods.
function checkNotify(name, resources, of) {
    const policy = resources.find(({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "kldiv-notify");
    const { podSelector, policyTypes, egress: [internet, alertmanager, dns] } = policy.spec, main = of("NetworkPolicy").spec;
    must(isDeepStrictEqual(podSelector, main.podSelector) && isDeepStrictEqual(policyTypes, ["Egress"]), `${name}: its pods`);
    must(internet.ports[0].port === 443 && internet.to.every(({ ipBlock }) => ipBlock.except.length > 1), `${name}: the internet`);
    must(isDeepStrictEqual(alertmanager.to[0], main.ingress[1].from[0]), `${name}: Alertmanager is where Prometheus is not`);
    must(isDeepStrictEqual(dns, main.egress[1]), `${name}: DNS is not as for the store`);
    must(of("Deployment").spec.template.spec.containers[0].env.some((e) => e.name === "KLDIV_NOTIFY"), `${name}: no --notify`);
}

function checkVariant(name, resources) {
    const of = (kind) => resources.find((resource) => resource.kind === kind);
    checkLinks(name, of);
    checkMonitoring(name, of);
    if (VARIANTS[name]?.[0] === "overlays/postgres") checkEgress(name, of("NetworkPolicy"));
    checkMounts(name, of("Deployment").spec.template);
    if (name === "with notify") checkNotify(name, resources, of);
    if (name === "with migration") checkMigration(name, resources, of);
    const deployment = of("Deployment"), one = name === "sqlite" || name === "example";
    checkPod(name, deployment);
    checkVersion(name, deployment.spec.template.spec.containers[0].image);
    for (const { kind, spec } of resources)
        must(!isEmpty(spec?.podSelector) && !isEmpty(kind === "PodDisruptionBudget" && spec.selector),
            `${name}: the ${kind} selects every pod`);
    must(deployment.spec.replicas === (one ? 1 : 2), `${name}: ${deployment.spec.replicas} replicas`);
    must(one ? deployment.spec.strategy.type === "Recreate"
        : deployment.spec.strategy.rollingUpdate.maxUnavailable === 0, `${name}: its strategy of updates`);
    for (const kind of ["HorizontalPodAutoscaler", "PodDisruptionBudget"])
        must(!of(kind) === one, `${name}: ${of(kind) ? "a" : "no"} ${kind}`);
    must(!of("PersistentVolumeClaim") === !one, `${name}: a volume is for a store in a file`);
    must(of("NetworkPolicy"), `${name}: no NetworkPolicy`);
}

// ---- Monokle's rules

// Made by whoever installs: the kustomizations of postgres, tokens, migration and notify tell how.
const secret = (name, stringData) => ({ apiVersion: "v1", kind: "Secret", metadata: { name }, stringData });
const SECRETS = [secret("kldiv-store", { url: "" }), secret("kldiv-tokens", { tokens: "", prometheus: "" }),
    secret("kldiv-owner", { url: "" }), secret("kldiv-notify", { "notify.json": "[]" })];

// Ids are unlike in all variants: Monokle remembers links by them.
const resource = (variant) => (content, i) => ({ id: `${variant} ${i}`, fileId: `${variant} ${i}`,
    filePath: `${content.kind}.yaml`, fileOffset: 0, name: content.metadata.name, apiVersion: content.apiVersion,
    kind: content.kind, content, text: stringify(content) });

const PLUGINS = { "pod-security-standards": true, practices: true, "resource-links": true, "yaml-syntax": true };

// The server takes its options from flags and variables, and the store's address has a password.
const EXCEPT = ["practices/no-secret-mounted-as-env", "practices/no-secret-env"];

// All rules of the plugins, also those that are off unless named: the restricted standard is among them.
async function allRules() {
    const validator = createDefaultMonokleValidator();
    await validator.preload({ plugins: PLUGINS });
    const names = validator.getPlugins().flatMap(({ metadata, rules }) => rules.map(({ name }) => `${metadata.name}/${name}`));
    return Object.fromEntries(names.map((name) => [name, EXCEPT.includes(name) ? false : "err"]));
}

async function runMonokle(name, resources, rules) {
    const validator = createDefaultMonokleValidator();
    await validator.preload({ plugins: PLUGINS, rules });
    // The rule of links finds those that were looked for before.
    const linked = processRefs([...resources, ...SECRETS].map(resource(name)), new ResourceParser());
    const { runs } = await validator.validate({ resources: linked });
    for (const { ruleId, message, locations } of runs.flatMap((run) => run.results))
        problems.push(`${name}: Monokle's ${ruleId}: ${message.text} ` +
            (locations?.[0]?.physicalLocation?.artifactLocation?.uri ?? ""));
}

const variants = renderAll();
writeTypes(variants);
const rules = await allRules();
for (const [name, resources] of variants) {
    checkVariant(name, resources);
    await runMonokle(name, resources, rules);
}
problems.forEach((problem) => console.error(problem));
if (problems.length) process.exit(1);
console.log(variants.map(([name, resources]) => `${name}: ${resources.length} resources`).join(", ") +
    `; ${Object.values(rules).filter(Boolean).length} rules of Monokle each`);
