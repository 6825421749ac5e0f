"""Airflow: a task that observes a day's file and fails if a column is critical, so that what comes after does not run.

    check_drift.override(retries=0)("http://127.0.0.1:8080", "sales", "/data/sales-{{ ds }}.csv")"""
from airflow.decorators import task
from airflow.exceptions import AirflowFailException

import kldiv


@task
def check_drift(url, group, path, timestamp=None):
    results = kldiv.Client(url).group(group).observe(path, timestamp)
    critical = [result.sentence() for result in results if result.verdict == "critical"]
    if critical:
        raise AirflowFailException("\n".join(critical))
    return {result.name: result.verdict for result in results}
