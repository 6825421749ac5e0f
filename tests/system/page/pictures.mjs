// Pictures of the READMEs: the overview, a monitor, the calculator, of tables of eight weeks.
// usage: node pictures.mjs KLDIVD FOLDER
import {mkdirSync} from "node:fs";
import {join, resolve} from "node:path";
import {Api, monitorPath} from "./api.mjs";
import {openVisit, startBrowser} from "./browser.mjs";
import {startServer} from "./server.mjs";
import {column, normal, randomNumbers, toCsv} from "./tables.mjs";

const WEEKS = 8;
const DAY_MS = 86_400_000;

/**
 * Applications for credit; `drift` moves age, income and channel, 0 being none.
 * @param {() => number} random
 * @param {number} n
 * @param {number} drift
 */
function applications(random, n, drift) {
    const channels = ["branch", "phone", "web", "partner"];
    const share = [0.35 - 0.2 * drift, 0.25, 0.4, 0.2 * drift];
    return toCsv({
        age: column(n, () => Math.round(42 - 5 * drift + 11 * normal(random))),
        income: column(n, () => Number(Math.exp(8 + 0.3 * drift + 0.5 * normal(random)).toFixed(0))),
        utilisation: column(n, () => Number(random().toFixed(3))),
        channel: column(n, () => {
            let rest = random();
            return channels[Math.max(share.findIndex(part => (rest -= part) < 0), 0)];
        }),
    });
}

/** @param {Api} api */
async function fill(api) {
    const random = randomNumbers(7);
    for (const group of ["credit", "cards"])
        await api.put(`${monitorPath(group)}?bins=10&method=auto`, applications(random, 5000, 0));
    await api.post("/groups/credit/notes", {text: "The web form asks for less", from: new Date(Date.now() - 13 * DAY_MS)});
    for (let day = WEEKS * 7; day >= 0; day--) {
        const at = encodeURIComponent(new Date(Date.now() - day * DAY_MS).toISOString());
        const drift = Math.max(0, 1 - day / 12);
        for (const [group, part] of /** @type {const} */ ([["credit", 1], ["cards", 0.1]]))
            await api.post(`${monitorPath(group)}/observations?timestamp=${at}`,
                           applications(random, 900, drift * part));
    }
}

const [binary, folder] = process.argv.slice(2).map(path => resolve(path));
const server = await startServer(binary);
await fill(new Api(server.url));
const browser = await startBrowser();
mkdirSync(folder, {recursive: true});
for (const {name, path, theme, width, height} of /** @type {const} */ ([
    {name: "overview", path: "/dashboard/", theme: "light", width: 1250, height: 690},
    {name: "monitor", path: "/dashboard/?group=credit&monitor=income", theme: "dark", width: 1100, height: 915},
    {name: "calculator", path: "/", theme: "light", width: 1100, height: 700},
])) {
    const visit = await openVisit(browser, server.url, {theme, width, height});
    await visit.page.goto(server.url + path, {waitUntil: "networkidle0"});
    await visit.page.screenshot({path: join(folder, `${name}.png`), optimizeForSpeed: false});
    await visit.close();
}
await browser.close();
await server.stop();
