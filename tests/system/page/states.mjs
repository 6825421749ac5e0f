// The fixtures themselves: each must be in the states that it is made for, or the views tested with
// it show something else.
import {fixtures} from "./fixtures.mjs";
import {expectSame} from "./report.mjs";

/**
 * Counts the states of a group's monitors.
 * @param {import("./api.mjs").Api} api
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
export async function checkFixtures({filled, report}) {
    for (const {group, states} of fixtures)
        await report.check(`the fixture ${group} is what it says`, async () => {
            const seen = await countStates(filled, group);
            expectSame(seen, JSON.stringify(states), "states");
            return seen;
        });
}
