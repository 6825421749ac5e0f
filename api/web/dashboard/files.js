/* An area to choose a file, or to drop one. */
import { element, fill, freshId } from "./dom.js";

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
