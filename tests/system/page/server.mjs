// kldivd as a process of its own, on a free port of 127.0.0.1.
import {execFileSync, spawn} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";

/** @type {string[]} */
const folders = [];
process.once("exit", () => folders.forEach(folder => rmSync(folder, {recursive: true})));

/**
 * @typedef {object} Server
 * @property {string} url  address without a path, as http://127.0.0.1:PORT
 * @property {string} folder  files of this server
 * @property {() => Promise<void>} stop  ends the server; throws if it did not end with 0
 */

/** @param {string} file */
function readPort(file) {
    try {
        return readFileSync(file, "utf8").trim();
    } catch {
        return "";
    }
}

/**
 * Starts a server. It ends with this process, too.
 * @param {string} binary
 * @param {string[]} options
 * @param {string} folder  files of this server
 * @returns {Promise<Server>}
 */
export async function startServer(binary, options = [], folder = makeFolder()) {
    const file = join(folder, "port");
    const child = spawn(binary, ["--listen", "127.0.0.1:0", "--port-file", file,
                                 "--log-level", "warning", ...options], {stdio: "inherit"});
    const ended = new Promise(resolve => child.once("exit", resolve));
    const killed = () => child.kill("SIGKILL");
    process.once("exit", killed);
    let port = "";
    for (let i = 0; i < 200 && !port && child.exitCode === null; i++) {
        await sleep(25);
        port = readPort(file);
    }
    if (!port) throw new Error(`${binary} does not listen`);
    const scheme = options.includes("--tls-cert") ? "https" : "http";
    return {
        url: `${scheme}://127.0.0.1:${port}`,
        folder,
        stop: async () => {
            child.kill("SIGTERM");
            const status = await ended;
            process.removeListener("exit", killed);
            if (status !== 0) throw new Error(`kldivd ended with ${status}`);
        },
    };
}

/** Makes a folder for files, which goes with this process. */
export function makeFolder() {
    const folder = mkdtempSync(join(tmpdir(), "kldiv-page-"));
    folders.push(folder);
    return folder;
}

/**
 * Makes a certificate of 127.0.0.1 for a day, signed by itself.
 * @param {string} folder
 * @returns {string[]}  options of a server that uses it
 */
export function makeCertificate(folder) {
    const cert = join(folder, "cert.pem"), key = join(folder, "key.pem");
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                             "-nodes", "-days", "1", "-subj", "/CN=kldiv test",
                             "-addext", "subjectAltName=IP:127.0.0.1",
                             "-keyout", key, "-out", cert], {stdio: "pipe"});
    return ["--tls-cert", cert, "--tls-key", key];
}
