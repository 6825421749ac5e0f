/* Lists that come in pages. */
import { ServiceError } from "./errors.js";

/** The entries of all pages, beginning with that of the query's cursor. */
export async function* pages<Q extends object, N extends string, T>(
    query: Q, name: N, ask: (query: Q) => Promise<{ [K in N]: T[] } & { next: string | null }>,
): AsyncGenerator<T> {
    for (;;) {
        const page = await ask(query);
        if (!Array.isArray(page[name]))
            throw new ServiceError(200, "unreadable", `the response has no list of ${name}`);
        yield* page[name];
        if (!page.next)
            return;
        query = { ...query, cursor: page.next };
    }
}
