/* The theme that was chosen in the dashboard, or that of the system. Swagger UI is dark in a page
 * of the class dark-mode. */
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen() {
    try {
        return localStorage.getItem("kldiv.theme");
    } catch {
        return null;
    }
}

function apply() {
    const theme = chosen();
    const dark = theme === "dark" || (theme !== "light" && system.matches);
    document.documentElement.classList.toggle("dark-mode", dark);
}

system.addEventListener("change", apply);
addEventListener("storage", apply);
apply();
