/* Where changes of state are told, whether that works, and a test. */
import { address, call } from "./api.js";
import { messageOf } from "./dialog.js";
import { element, fill } from "./dom.js";
import { lasting, plural, time } from "./format.js";

/** @typedef {import("./types.js").Receiver} Receiver */

export class Notifications {
    constructor() {
        this.shown = "";
        this.node = element("section", { class: "panel", "aria-label": "Notifications", hidden: true });
    }

    /** @param {AbortSignal} signal */
    async load(signal) {
        const { notifications } = await call("GET", address(["notifications"]), { signal });
        this.show(notifications);
    }

    /** @param {Receiver[]} receivers */
    show(receivers) {
        const text = JSON.stringify(receivers);
        this.node.hidden = receivers.length === 0;
        if (text === this.shown)
            return;
        this.shown = text;
        fill(this.node, element("h2", {}, "Notifications"),
            element("ul", { class: "receivers" }, ...receivers.map(receiver)));
    }
}

/** @param {Receiver} of */
function receiver(of) {
    const answer = element("span", { class: "quiet", "aria-live": "polite" });
    const test = async () => {
        answer.textContent = "Sending …";
        const url = address(["notifications", of.name, "test"]);
        answer.textContent = await call("POST", url).then(({ delivered, status, failure }) =>
            delivered ? `Delivered: ${status}.` : `Not delivered: ${failure ?? status}.`, messageOf);
    };
    const failing = of.failing_since
        ? `fails since ${time(of.failing_since)}, for ${lasting(of.failing_since)}: ${of.failure ?? ""}`
        : of.last_success ? `last sent ${time(of.last_success)}` : "nothing sent yet";
    return element("li", {}, element("b", {}, of.name), ` ${of.format}: `,
        element("span", { class: of.failing_since ? "critical" : "quiet" }, failing),
        of.pending > 0 && `, ${plural(of.pending, "change")} waiting`, " ",
        element("button", { type: "button", click: test }, "Send a test"), " ", answer);
}
