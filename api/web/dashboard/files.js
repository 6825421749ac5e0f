/* An area to choose a file, or to drop one. */
import { element, fill, freshId } from "./dom.js";

/** A file that was dropped on a view that leads to another. @type {File | null} */
let dropped = null;

/** The file that led here, once. */
export function droppedFile() {
    const file = dropped;
    dropped = null;
    return file;
}

/** Lets a file be dropped anywhere, which leads to adding it. Aborting the result ends that. */
export function takeDrops() {
    const ended = new AbortController();
    const { signal } = ended;
    document.addEventListener("dragover", (event) => {
        event.preventDefault();
        document.body.classList.add("over");
    }, { signal });
    document.addEventListener("dragleave", () => document.body.classList.remove("over"), { signal });
    document.addEventListener("drop", (event) => {
        event.preventDefault();
        document.body.classList.remove("over");
        dropped = event.dataTransfer?.files[0] ?? null;
        if (dropped) {
            const group = new URLSearchParams(location.search).get("group");
            history.pushState(null, "", `?${new URLSearchParams({ add: "", ...(group && { into: group }) })}`);
            dispatchEvent(new PopStateEvent("popstate"));
        }
    }, { signal });
    signal.addEventListener("abort", () => document.body.classList.remove("over"));
    return ended;
}

/**
 * @param {string} label
 * @param {(file: File) => void} chosen
 */
export function fileChooser(label, chosen) {
    const id = freshId();
    const name = element("p", { class: "quiet" }, "or drop it here");
    const input = element("input", { id, type: "file", accept: ".csv,.tsv,.txt,text/csv",
                                     change: () => use(input.files) });
    const area = element("div", { class: "drop" },
        element("label", { for: id }, label), input, name);
    /* A click forgets the file, so that the same one, changed, may be chosen again. */
    input.addEventListener("click", () => (input.value = ""));
    const use = (/** @type {FileList | null | undefined} */ files) => {
        const file = files?.[0];
        if (!file)
            return;
        fill(name, `${file.name}, ${Math.ceil(file.size / 1024).toLocaleString("en")} KiB`);
        chosen(file);
    };
    const over = (/** @type {DragEvent} */ event) => {
        event.preventDefault();
        area.classList.toggle("over", event.type === "dragover");
        if (event.type === "drop")
            use(event.dataTransfer?.files);
    };
    /* A file that misses the area would be opened instead of the page. */
    for (const type of /** @type {const} */ (["dragover", "drop"]))
        document.addEventListener(type, (event) => event.preventDefault());
    for (const type of /** @type {const} */ (["dragover", "dragleave", "drop"]))
        area.addEventListener(type, over);
    return area;
}
