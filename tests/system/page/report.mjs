// Report of a run: one line for each check, "ok" or "FAILED", with what was seen.

const CHECK_MS = 60_000;

/**
 * Failure of a check: `message` says what was seen, and what was expected.
 */
export class Failure extends Error {}

/**
 * Fails the check that is running unless `condition` holds.
 * @param {unknown} condition
 * @param {string} seen
 * @returns {asserts condition}
 */
export function expect(condition, seen) {
    if (!condition) throw new Failure(seen);
}

/**
 * Fails the check that is running unless both are the same value.
 * @param {unknown} seen
 * @param {unknown} expected
 * @param {string} what
 */
export function expectSame(seen, expected, what) {
    expect(Object.is(seen, expected),
           `${what}: ${JSON.stringify(seen)}, expected ${JSON.stringify(expected)}`);
}

/** @param {unknown} error */
function describe(error) {
    if (error instanceof Failure) return error.message;
    if (!(error instanceof Error)) return String(error);
    const place = /tests\/page\/(\w+\.mjs:\d+)/.exec(error.stack ?? "");
    return `could not run: ${error.message}${place ? ` (${place[1]})` : ""}`;
}

/**
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
async function within(promise) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not done after ${CHECK_MS} ms`)), CHECK_MS);
    });
    try {
        return /** @type {T} */ (await Promise.race([promise, late]));
    } finally {
        clearTimeout(timer);
    }
}

export class Report {
    /** @type {string[]} */
    failed = [];
    n = 0;

    /**
     * The same report, for a suite whose name its lines begin with.
     * @param {string} suite
     * @returns {Pick<Report, "check">}
     */
    of(suite) {
        return {check: (name, body) => this.check(`${suite}: ${name}`, body)};
    }

    /**
     * Runs one check. A check that throws has failed, whatever it threw: one that cannot run is
     * no better than one that found a fault.
     * @param {string} name
     * @param {() => Promise<string | void> | string | void} body  returns what was seen
     */
    async check(name, body) {
        const began = Date.now();
        this.n++;
        try {
            const seen = await within(Promise.resolve().then(body));
            const told = seen ? `: ${seen.replace(/\s+/g, " ")}` : "";
            console.log(`ok      ${name}${told} (${Date.now() - began} ms)`);
        } catch (error) {
            this.failed.push(name);
            const told = describe(error).replace(/\s+/g, " ");
            console.log(`FAILED  ${name}: ${told} (${Date.now() - began} ms)`);
        }
    }

    /** Prints the sum; the exit status of the run. */
    end() {
        console.log(`\n${this.n} checks, ${this.failed.length} failed`);
        for (const name of this.failed) console.log(`        ${name}`);
        return this.n > 0 && this.failed.length === 0 ? 0 : 1;
    }
}
