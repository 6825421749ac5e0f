/* Whether the server records what it is sent, and tells of it: a page whose numbers are fresh does not show that. */
import { address, call, root } from "./api.js";
import { element, renew } from "./dom.js";
import { lasting, list, time } from "./format.js";

/** @typedef {import("./types.js").Receiver} Receiver */

/** Says what fails, since when and why; says nothing where all is well. */
export class HealthAlert {
    constructor() {
        this.node = element("div", { class: "alert failing", role: "alert" });
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const [state, told] = await Promise.all([
            fetch(new URL("readyz", root), { signal, headers: { Accept: "application/json" } })
                .then((response) => response.json()).catch(() => null),
            call("GET", address(["notifications"]), { signal }),
        ]);
        renew(this.node, storeText(state), receiversText(told.notifications));
    }
}

/** @param {{ store?: string, store_since?: string, store_error?: string } | null} state */
function storeText(state) {
    const { store, store_since: since, store_error: why } = state ?? {};
    return store === "down" && "Nothing is being recorded: the store fails" +
        (since ? ` since ${time(since)}, for ${lasting(since)}` : "") + (why ? `. ${why}. ` : ". ");
}

/** @param {Receiver[]} receivers */
function receiversText(receivers) {
    const failing = receivers.filter(({ failing_since: since }) => since !== null);
    return failing.length > 0 && `Nobody is told: ${list(failing.map(({ name, failing_since: since, pending }) =>
        `${name} fails since ${time(since ?? "")}, ${pending} waiting`))}. `;
}
