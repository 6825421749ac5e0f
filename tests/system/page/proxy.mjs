// A reverse proxy that serves a server under a path prefix, as a company's one host name does.
import {createServer, request} from "node:http";

/**
 * @typedef {object} Proxy
 * @property {string} url  address with the prefix, ends without a slash
 * @property {string[]} strays  paths that were asked outside of the prefix
 * @property {() => void} stop
 */

/**
 * @param {string} target  address of the server
 * @param {string} prefix  as /company/drift
 * @returns {Promise<Proxy>}
 */
export function startProxy(target, prefix) {
    /** @type {string[]} */
    const strays = [];
    const proxy = createServer((asked, reply) => {
        const path = asked.url ?? "/";
        if (!path.startsWith(`${prefix}/`)) {
            strays.push(path);
            reply.writeHead(404).end();
            return;
        }
        const {method, headers} = asked;
        const onward = request(target + path.slice(prefix.length), {method, headers}, answer => {
            reply.writeHead(answer.statusCode ?? 502, answer.headers);
            answer.pipe(reply);
        });
        onward.on("error", () => reply.writeHead(502).end());
        asked.pipe(onward);
    });
    return new Promise(resolve => {
        proxy.listen(0, "127.0.0.1", () => {
            const {port} = /** @type {import("node:net").AddressInfo} */ (proxy.address());
            resolve({url: `http://127.0.0.1:${port}${prefix}`, strays,
                     stop: () => { proxy.close(); proxy.closeAllConnections(); }});
        });
    });
}
