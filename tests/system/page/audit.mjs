// Audits of a page that hold for every view: axe-core, and a document no wider than its window.
import axe from "axe-core";
import {expect} from "./report.mjs";

/** @typedef {import("puppeteer-core").Page} Page */

/**
 * Runs axe-core with all its rules but the experimental ones; fails at any violation.
 * @param {Page} page
 * @param {string[]} others  selectors of what is not ours
 * @returns {Promise<string>}
 */
export async function auditAccess(page, others = []) {
    await page.evaluate(axe.source);
    const {violations, passes} = await page.evaluate(async exclude => {
        // @ts-expect-error: defined by the source above
        const results = await window.axe.run({exclude}, {resultTypes: ["violations"]});
        return {passes: results.passes.length, violations: results.violations};
    }, others);
    const told = violations.map((/** @type {axe.Result} */ {id, help, nodes}) =>
        `${id} (${help}) ${nodes.length} times, as ${nodes[0].html.slice(0, 160)} ` +
        `${nodes[0].failureSummary?.replaceAll("\n", " ")}`);
    expect(told.length === 0, told.join("; "));
    return `${passes} rules pass`;
}

/**
 * Fails if the document scrolls sideways, and names what sticks out.
 * @param {Page} page
 * @returns {Promise<string>}
 */
export async function auditWidth(page) {
    const {content, window, widest} = await page.evaluate(() => {
        const root = document.documentElement;
        const limit = root.clientWidth;
        const out = [...document.body.querySelectorAll("*")]
            .filter(element => element.getBoundingClientRect().right > limit + 1)
            .map(({tagName, className}) => `${tagName.toLowerCase()}.${className}`);
        return {content: root.scrollWidth, window: limit, widest: out.slice(0, 4)};
    });
    expect(content <= window, `${content} px in a window of ${window}: ${widest.join(" ")}`);
    return `${content} px`;
}
