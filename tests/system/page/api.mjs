// Calls of the server's API, for what tests prepare and for what the page must agree with.

/** @param {string[]} names  group, or group and monitor; further parts of the path */
export function monitorPath(...names) {
    return `/monitors/${names.map(encodeURIComponent).join("/")}`;
}

export class Api {
    /**
     * @param {string} url
     * @param {string} token
     */
    constructor(url, token = "") {
        this.url = url;
        this.token = token;
    }

    /**
     * Sends one request; throws unless the answer is 2xx. A body that is no text goes as JSON.
     * @param {string} method
     * @param {string} path
     * @param {unknown} [body]
     * @returns {Promise<any>}
     */
    async send(method, path, body) {
        /** @type {Record<string, string>} */
        const headers = this.token ? {Authorization: `Bearer ${this.token}`} : {};
        if (body !== undefined)
            headers["Content-Type"] = typeof body === "string" ? "text/csv" : "application/json";
        const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
        const answer = await fetch(this.url + path, {method, headers, body: text});
        const json = answer.status === 204 ? null : await answer.json();
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${json.detail}`);
        return json;
    }

    /** @param {string} path */
    get(path) {
        return this.send("GET", path);
    }

    /**
     * @param {string} path
     * @param {unknown} body
     */
    put(path, body) {
        return this.send("PUT", path, body);
    }

    /**
     * @param {string} path
     * @param {unknown} body
     */
    post(path, body) {
        return this.send("POST", path, body);
    }

    /**
     * Runs jobs in order, at most `width` at a time.
     * @template T
     * @param {T[]} items
     * @param {number} width
     * @param {(item: T) => Promise<unknown>} job
     */
    async each(items, width, job) {
        let next = 0;
        const lane = async () => {
            while (next < items.length) await job(items[next++]);
        };
        await Promise.all(Array.from({length: width}, lane));
    }
}
