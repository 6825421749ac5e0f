/* Whether the server records what it is sent: the numbers of a page may be old without being wrong. */
import { root } from "./api.js";
import { element, renew } from "./dom.js";
import { lasting, time } from "./format.js";

/** Says that nothing is recorded, since when and why; says nothing where all is well. */
export class StoreAlert {
    constructor() {
        this.node = element("div", { class: "alert failing", role: "alert" });
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const state = await fetch(new URL("readyz", root), { signal, headers: { Accept: "application/json" } })
            .then((response) => response.json()).catch(() => null);
        const { store, store_since: since, store_error: why } = state ?? {};
        renew(this.node, store === "down" && "Nothing is being recorded: the store fails" +
            (since ? ` since ${time(since)}, for ${lasting(since)}` : "") + (why ? `. ${why}` : "") + ".");
    }
}
