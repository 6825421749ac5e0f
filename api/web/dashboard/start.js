/* The dashboard: shows the view that the address names. */
import { add } from "./add.js";
import { compareFiles } from "./compare-files.js";
import { byId, fill } from "./dom.js";
import { events } from "./events.js";
import { watchKeys } from "./keys.js";
import { monitor } from "./monitor.js";
import { carryRange } from "./range.js";
import { overview } from "./overview.js";
import { showSettings } from "./settings.js";

/**
 * A view fills `main`. Its state is in the address, so that a reload, a bookmark and the back button
 * find it again. `redraw` is called when theme or zone changed, `update` when the address did within
 * the view, `leave` at its end.
 *
 * @typedef {{ redraw: () => void, update: (query: URLSearchParams) => void,
 *             leave: () => void }} View
 * @typedef {(main: HTMLElement, query: URLSearchParams) => View} Show
 */

/** @type {View | null} */
let view = null;
let shown = "";

/** @param {URLSearchParams} query */
function viewOf(query) {
    return query.has("monitor") ? monitor : query.has("add") ? add : query.has("files") ? compareFiles
        : query.has("events") ? events : overview;
}

/**
 * @param {HTMLAnchorElement} link of the bar
 * @param {URLSearchParams} query
 */
function isHere(link, query) {
    return link.pathname === location.pathname &&
        ["events", "files"].every((name) => new URLSearchParams(link.search).has(name) === query.has(name));
}

function show() {
    const query = new URLSearchParams(location.search);
    const main = byId("main");
    const identity = JSON.stringify(query.has("monitor")
        ? [query.get("group"), query.get("monitor")] : ["add", "events", "files"].map((name) => query.has(name)));
    if (view && shown === identity) {
        view.update(query);
        return;
    }
    for (const link of document.querySelectorAll("nav a"))
        if (isHere(/** @type {HTMLAnchorElement} */ (link), query))
            link.setAttribute("aria-current", "page");
        else
            link.removeAttribute("aria-current");
    view?.leave();
    fill(main);
    view = viewOf(query)(main, query);
    if (shown) {
        main.focus({ preventScroll: true });
        scrollTo(0, 0);
    }
    shown = identity;
}

/**
 * Follows links between views without loading the page again.
 *
 * @param {MouseEvent} event
 */
function follow(event) {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    if (!link || !plain || link.origin !== location.origin || link.hash || link.download ||
        link.pathname !== location.pathname)
        return;
    event.preventDefault();
    carryRange(link);
    history.pushState(null, "", link.href);
    show();
}

/** A link that is about to be used leads to the range that is looked at. @param {Event} event */
function aim(event) {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link?.origin === location.origin && link.pathname === location.pathname && !link.hash && !link.download)
        carryRange(link);
}

showSettings();
watchKeys();
document.addEventListener("pointerover", aim);
document.addEventListener("focusin", aim);
document.addEventListener("click", follow);
document.addEventListener("settings", () => view?.redraw());
addEventListener("popstate", show);
show();
