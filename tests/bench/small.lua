wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]], "reduction": "batchmean"}'
