// Fixtures: each fills a server with monitors in one state, through the API. Random values are the
// same in every run; times count back from now.
import {monitorPath} from "./api.mjs";
import {column, normal, randomNumbers, toCsv} from "./tables.mjs";

/**
 * @typedef {import("./api.mjs").Api} Api
 * @typedef {import("./tables.mjs").Table} Table
 */

const ROWS = 2000;
const DAY = 86400;
const CITIES = ["Köln", "東京", "São Paulo", "Oslo"];
const REGIONS = ["north", "south", "east", "west", "abroad"];

/**
 * A table of loans. `income` is shifted by so many standard deviations, `score` likewise.
 * @param {number} seed
 * @param {{income?: number, score?: number, n?: number}} [shifts]
 * @returns {Table}
 */
export function loans(seed, {income = 0, score = 0, n = ROWS} = {}) {
    const random = randomNumbers(seed);
    return {
        age: column(n, () => Math.round(40 + 9 * normal(random))),
        income: column(n, () => Math.round(1000 * Math.exp(1 + 0.5 * (normal(random) + income)))),
        score: column(n, () => Math.round(600 + 80 * (normal(random) + score))),
        balance: column(n, () => random() < 0.1 ? null : Math.round(5000 * random())),
        region: column(n, () => REGIONS[Math.floor(5 * random() ** 2)]),
    };
}

/**
 * @param {Api} api
 * @param {string} group
 * @param {Table} current
 * @param {string} [settings] as a query
 */
async function watchLoans(api, group, current, settings = "") {
    await api.put(monitorPath(group) + settings, toCsv(loans(1)));
    await api.post(monitorPath(group, "observations"), toCsv(current));
}

/** @param {Api} api */
export function healthy(api) {
    return watchLoans(api, "healthy", loans(2));
}

/**
 * `income` is critical, all other columns are as the reference.
 * @param {Api} api
 */
export function shifted(api) {
    return watchLoans(api, "shifted", loans(3, {income: 1}));
}

/**
 * `score` is a warning, all other columns are as the reference.
 * @param {Api} api
 */
export function warning(api) {
    return watchLoans(api, "warned", loans(4, {score: 0.5}), "?critical=0.3");
}

/** @param {Api} api */
export function insufficient(api) {
    return watchLoans(api, "few rows", loans(5, {n: 12}));
}

/**
 * A bin that the reference never saw, without smoothing: KL is infinite.
 * @param {Api} api
 */
export async function infinite(api) {
    const path = monitorPath("infinite", "unseen");
    await api.put(path, {bins: {labels: ["seen", "new"]}, pseudocount: 0,
                         reference: {counts: [1000, 0]}});
    const now = Math.floor(Date.now() / 1000);
    const batches = [[200, 0], [150, 50], [200, 0], [180, 20]];
    for (const [i, counts] of batches.entries())
        await api.post(`${path}/observations`,
                       {counts, timestamp: now - (batches.length - i) * 3600});
}

/**
 * Batches of the same moment, as of tables that tell the day alone.
 * @param {Api} api
 */
export async function sameTime(api) {
    const path = monitorPath("same time", "daily");
    const today = Math.floor(Date.now() / 1000 / DAY) * DAY;
    await api.put(path, {bins: {labels: ["a", "b"]}, reference: {counts: [500, 500]}});
    for (const timestamp of [today - DAY, today, today, today])
        await api.post(`${path}/observations`, {counts: [100, 104], timestamp});
}

/**
 * A monitor of two labels that are as frequent in the reference, and batches of it, a minute apart.
 * @param {Api} api
 * @param {string} group
 * @param {string} name
 * @param {number[][]} batches  counts of either label
 */
export async function twoLabels(api, group, name, ...batches) {
    const path = monitorPath(group, name);
    await api.put(path, {bins: {labels: ["a", "b"]}, reference: {counts: [500, 500]}});
    await postMinutes(api, path, 0, batches, 1);
}

/**
 * @param {Api} api
 * @param {string} path  of a monitor
 * @param {number} from  number of the first minute
 * @param {number[][]} batches
 * @param {number} atOnce  posts under way; with several they may come in another order
 */
export async function postMinutes(api, path, from, batches, atOnce = 16) {
    const start = (Math.floor(Date.now() / 1000 / DAY) - 2) * DAY;
    await api.each([...batches.keys()], atOnce, i => api.post(
        `${path}/observations`, {counts: batches[i], timestamp: start + (from + i) * 60}));
}

/** @param {Api} api */
export async function singleBin(api) {
    const path = monitorPath("single", "constant");
    await api.put(path, {bins: {edges: [0, 1]}, reference: {counts: [500]}});
    await api.post(`${path}/observations`, {counts: [200]});
}

/** @param {Api} api */
export async function thousandBins(api) {
    const random = randomNumbers(6);
    const path = monitorPath("fine", "latency");
    const bell = (/** @type {number} */ i, /** @type {number} */ middle) =>
        Math.round(400 * Math.exp(-(((i - middle) / 180) ** 2)) + 5 * random());
    const before = Array.from({length: 1000}, (_, i) => bell(i, 450));
    const after = Array.from({length: 1000}, (_, i) => bell(i, 620));
    await api.put(path, {bins: {edges: Array.from({length: 1001}, (_, i) => i)},
                         reference: {counts: before}});
    await api.post(`${path}/observations`, {counts: after});
}

/**
 * Ten years of days. Each spring drifts a little, a fault of ten days is critical, and 40 days of
 * the third year are missing.
 * @param {Api} api
 */
export async function tenYears(api) {
    const path = monitorPath("history", "ten years");
    const random = randomNumbers(7), n = 3650;
    const today = Math.floor(Date.now() / 1000 / DAY) * DAY;
    await api.put(path, {bins: {labels: ["a", "b", "c", "d"]}, retention_days: 4000,
                         reference: {counts: [4000, 3000, 2000, 1000]}});
    const days = Array.from({length: n}, (_, i) => i).filter(i => i < 800 || i >= 840);
    await api.each(days, 32, async i => {
        const season = 60 * Math.max(0, Math.sin(2 * Math.PI * i / 365));
        const fault = i >= 3000 && i < 3010 ? 250 : 0;
        const noise = Math.round(season + 20 * random());
        const counts = [400 - noise, 300 - fault, 200 + noise, 100 + fault];
        await api.post(`${path}/observations`, {counts, timestamp: today - (n - i) * DAY});
    });
}

export const NAMED = "имена / שמות 😀";
export const SCRIPT = "<script>alert(1)</script>";
export const NAMES = ["drift 📈 naïve", "تجربة الانحراف", "with several  spaces", "od280/od315",
                      SCRIPT, "50%? a&b=c#d+e", "\"quotes\" 'both'", "x".repeat(128)];

/**
 * Names and labels that careless pages break on.
 * @param {Api} api
 */
export async function names(api) {
    for (const name of NAMES) {
        await api.put(monitorPath(NAMED, name), {bins: {labels: [...NAMES]},
                                                 reference: {counts: NAMES.map(() => 100)}});
        await api.post(monitorPath(NAMED, name, "observations"),
                       {counts: NAMES.map((_, i) => i === 4 ? 400 : 50)});
    }
}

/**
 * A thousand monitors: ten tables of a hundred columns, three columns of each shifted.
 * @param {Api} api
 */
export async function thousandMonitors(api) {
    for (let table = 0; table < 10; table++) {
        const group = `fleet ${table}`;
        const make = (/** @type {number} */ seed, /** @type {number} */ shift) => {
            const random = randomNumbers(seed);
            return Object.fromEntries(Array.from({length: 100}, (_, i) => [
                `sensor ${String(i).padStart(2, "0")}`,
                column(200, () => Number((normal(random) + (i < 3 ? shift : 0)).toFixed(3)))]));
        };
        await api.put(monitorPath(group), toCsv(make(100 + table, 0)));
        for (let batch = 0; batch < 5; batch++)
            await api.post(monitorPath(group, "observations"),
                           toCsv(make(1000 + 10 * table + batch, 0.3 * batch)));
    }
}

/**
 * More monitors than one answer lists, of one table: 1,050 are critical, 50 are ok.
 * @param {Api} api
 */
export async function elevenHundred(api) {
    const make = (/** @type {number} */ shift) => toCsv(Object.fromEntries(
        Array.from({length: 1100}, (_, i) => [`small ${i}`, column(60, row =>
            row % 4 + (i < 1050 ? shift : 0))])));
    await api.put(`${monitorPath("many")}?bins=4`, make(0));
    await api.post(monitorPath("many", "observations"), make(3));
}

/**
 * A table of text and of missing values.
 * @param {Api} api
 */
export async function textAndMissing(api) {
    const table = (/** @type {number} */ seed, /** @type {number} */ missing) => {
        const random = randomNumbers(seed);
        return {
            city: column(ROWS, () => CITIES[Math.floor(4 * random())]),
            note: column(ROWS, () => random() < missing ? null : "present"),
            amount: column(ROWS, () => random() < missing ? null : Math.round(100 * random())),
        };
    };
    await api.put(monitorPath("texts"), toCsv(table(8, 0.05)));
    await api.post(monitorPath("texts", "observations"), toCsv(table(9, 0.4)));
}

/**
 * Hours that ended thirty days ago; nothing came since.
 * @param {Api} api
 */
export async function stale(api) {
    const path = monitorPath("stale", "hourly");
    const start = Math.floor(Date.now() / 1000) - 30 * DAY;
    await api.put(path, {bins: {edges: [0, 1, 2]}, window: {seconds: 3600, grace: 60},
                         reference: {counts: [500, 500]}});
    for (let hour = 0; hour < 6; hour++)
        await api.post(`${path}/observations`,
                       {counts: [100, 100 + 5 * hour], timestamp: start + 3600 * hour});
}

/**
 * A hundred hours, of which ten are missing before and after one that stands alone.
 * @param {Api} api
 */
export async function gaps(api) {
    const path = monitorPath("gaps", "lone");
    const now = Math.floor(Date.now() / 3600_000) * 3600;
    await api.put(path, {bins: {labels: ["a", "b"]}, window: {seconds: 3600, grace: 60},
                         reference: {counts: [500, 500]}});
    const hours = Array.from({length: 100}, (_, i) => 100 - i).filter(i => i === 25 || i < 15 || i > 35);
    await api.each(hours, 16, hour => api.post(`${path}/observations`, {counts: [100, 100 + hour % 9],
                                                                       timestamp: now - 3600 * hour}));
}

/**
 * fixtures: those that stand beside each other on one server, with the states that must come of
 * them.
 */
export const fixtures = [
    {fill: healthy, group: "healthy", states: {ok: 5}},
    {fill: shifted, group: "shifted", states: {critical: 1, ok: 4}},
    {fill: warning, group: "warned", states: {ok: 4, warning: 1}},
    {fill: insufficient, group: "few rows", states: {insufficient_data: 5}},
    {fill: infinite, group: "infinite", states: {critical: 1}},
    {fill: sameTime, group: "same time", states: {ok: 1}},
    {fill: singleBin, group: "single", states: {ok: 1}},
    {fill: thousandBins, group: "fine", states: {critical: 1}},
    {fill: tenYears, group: "history", states: {ok: 1}},
    {fill: names, group: NAMED, states: {critical: NAMES.length}},
    {fill: textAndMissing, group: "texts", states: {critical: 2, ok: 1}},
    {fill: gaps, group: "gaps", states: {ok: 1}},
    {fill: stale, group: "stale", states: {ok: 1}},
];

/** @param {Api} api */
export async function fillAll(api) {
    await Promise.all(fixtures.map(({fill}) => fill(api)));
}
