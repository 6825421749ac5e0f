"""MLflow: the drift of a table in a run, as metrics and as a page.

    with mlflow.start_run():
        log_drift(kldiv.Client("http://127.0.0.1:8080").group("fraud"), today)"""
import math
import os
import re
import tempfile

import mlflow


def log_drift(group, table, **options):
    results = group.observe(table, **options)
    mlflow.log_metrics({"kl/" + re.sub(r"[^\w./ -]", "_", r.name): r.kl for r in results if math.isfinite(r.kl)})
    with tempfile.TemporaryDirectory() as directory:
        results.save_html(os.path.join(directory, "drift.html"))
        mlflow.log_artifact(os.path.join(directory, "drift.html"))
    return results
