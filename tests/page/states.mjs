// The fixtures themselves: each must be in the states that it is made for, or the views tested with
// it show something else.
import {Api} from "./api.mjs";
import {fixtures, thousandMonitors} from "./fixtures.mjs";
import {expectSame} from "./report.mjs";
import {startServer} from "./server.mjs";

/**
 * Counts the states of a group's monitors.
 * @param {Api} api
 * @param {string} group
 */
async function countStates(api, group) {
    const {monitors} = await api.get(`/monitors?limit=1000&group=${encodeURIComponent(group)}`);
    /** @type {Record<string, number>} */
    const counts = {};
    for (const {state} of monitors) counts[state] = (counts[state] ?? 0) + 1;
    return JSON.stringify(Object.fromEntries(Object.entries(counts).sort()));
}

/** @param {import("./run.mjs").Room} room */
export async function checkFixtures({binary, report}) {
    const server = await startServer(binary);
    const api = new Api(server.url);
    for (const {fill, states} of fixtures)
        await report.check(`the fixture ${fill.name} is what it says`, async () => {
            const seen = await countStates(api, await fill(api));
            expectSame(seen, JSON.stringify(Object.fromEntries(Object.entries(states).sort())),
                       "states");
            return seen;
        });
    await report.check("a thousand monitors beside them", async () => {
        await thousandMonitors(api);
        const {monitors, next} = await api.get("/monitors?limit=1000&q=sensor");
        expectSame(monitors.length, 1000, "monitors");
        expectSame(next, null, "next page");
    });
    await report.check("the server ends", () => server.stop());
}
