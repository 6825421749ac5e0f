// Node over a unix socket: JSON, of float64 and of float32.
import http from "node:http";

const body = JSON.stringify({input: [[-1, -0.5], [-2, -0.25]], target: [[0.25, 0.75], [0.5, 0.5]],
                             reduction: "batchmean"});

function post(socketPath, path) {
    return new Promise((resolve, reject) => {
        const request = http.request({socketPath, path, method: "POST"}, async (answer) => {
            const content = JSON.parse(Buffer.concat(await answer.toArray()).toString());
            answer.statusCode === 200 ? resolve(content.loss) : reject(new Error(content.detail));
        });
        request.on("error", reject).end(body);
    });
}

for (const dtype of ["float64", "float32"])
    console.log(await post(process.argv[2], "/kl_div?dtype=" + dtype));
