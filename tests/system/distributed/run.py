"""Runs the package kldiv over processes: random cuts of strided arrays, Dask with a
worker that is killed in the middle, and MPI. All must print or give the bits of one call.

usage: run.py LIBKLDIV_SO KLDIVD"""
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients")
os.environ["KLDIV_LIBRARY"] = os.path.abspath(sys.argv[1])
PACKAGE = os.path.join(CLIENTS, "..", "..", "..", "api", "clients", "python")
os.environ["KLDIV_SERVER"] = os.path.abspath(sys.argv[2])
os.environ["PYTHONPATH"] = CLIENTS + os.pathsep + PACKAGE
os.environ["PYTHONWARNINGS"] = "ignore::UserWarning"  # of mean
sys.path[:0] = [CLIENTS, PACKAGE, os.path.join(CLIENTS, "..", "python")]

import numpy as np

import kldiv
import kldiv.dask

warnings.simplefilter("ignore", UserWarning)
LOGITS = {"input_space": "logit", "target_space": "logit"}


def expect(good, what):
    if not good:
        sys.exit(f"distributed: {what}")


def same(a, b):
    return a.tobytes() == b.tobytes() and a.dtype == b.dtype


def options_of(rng):
    """Random options, and whether they cut between rows."""
    options = [{}, {"dim": -1}, LOGITS, {**LOGITS, "dim": -1, "temperature": 2.0},
               {"log_target": True}, {"base": 2, "dim": [1]}, {"compat": "math"}]
    return dict(options[rng.integers(len(options))])


def cut_at_random(rng):
    """Pickled partial results of random shards, which merge to the loss of the whole."""
    dtype = ["float64", "float32", "float16"][rng.integers(3)]
    shape = (int(rng.integers(1, 3000)), int(rng.choice([1, 3, 10, 37, 64, 512])))
    a = np.log(rng.random((2, 2 * shape[0], 2 * shape[1]))).astype(dtype)
    x, t = a[0, ::2, 1::2], np.asfortranarray(np.exp(a[1, ::2, ::2]))  # strided in any way
    options = options_of(rng)
    if options.get("log_target"):
        t = np.log(t)
    if rng.random() < 0.5:
        options["weight"] = rng.random((shape[0], 1) if "dim" not in options else shape[0])
    if rng.random() < 0.5:
        options["mask"] = rng.random(shape if "dim" not in options else shape[0]) < 0.7
    step = kldiv.step(x, t, **options)
    expect(step > 0, "calls are cut along the first axis")
    cuts = sorted({0, shape[0], *(int(c) // step * step for c in rng.integers(0, shape[0], 4))})
    shards = []
    for begin, end in zip(cuts, cuts[1:]):
        own = {k: v[begin:end] if k in ("weight", "mask") else v for k, v in options.items()}
        shards.append(pickle.dumps(kldiv.partial(x[begin:end], t[begin:end], **own)))
    rng.shuffle(shards)
    merged = sum((pickle.loads(shard) for shard in shards), kldiv.Partial())
    for reduction in "mean", "batchmean", "sum":
        whole = kldiv.kl_div(x, t, reduction=reduction, **options)
        expect(same(merged.loss(reduction), whole), f"{shape} {dtype} {options} {reduction}")


def check_module():
    rng = np.random.default_rng(1)
    for _ in range(200):
        cut_at_random(rng)
    none = kldiv.kl_div(np.zeros((2, 3)), np.ones((2, 3)), reduction="none", dim=1)
    expect(none.tolist() == [0, 0], "a loss of each row")
    for options in {"reduction": "none"}, {"dim": 7}:
        try:
            kldiv.partial(np.zeros((2, 3)), np.ones((2, 3)), **options)
            expect(False, f"{options} fails")
        except ValueError:
            pass


def slow_block(block):
    time.sleep(0.3)
    return block


def check_dask():
    import dask.array as da
    from distributed import Client, LocalCluster

    a = np.random.default_rng(2).standard_normal((2, 40_000, 10))
    whole = kldiv.kl_div(*a, reduction="batchmean", **LOGITS)
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster, \
            Client(cluster) as client:
        x, t = (da.from_array(b, chunks=(1_700, 10)) for b in a)
        future = client.compute(kldiv.dask.partial(x.map_blocks(slow_block), t, **LOGITS))
        time.sleep(1.5)
        expect(not future.done(), "a worker is killed in the middle")
        pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), 9)
        expect(same(future.result(timeout=120).loss("batchmean"), whole), "Dask's loss is another")
        after = client.run(os.getpid)
        expect(set(after.values()) != set(pids.values()), "a worker was killed")
        check_files(cluster, client)
        example = run([sys.executable, os.path.join(CLIENTS, "with_dask.py"), cluster.scheduler_address])
        check_example("with_dask.py", example)


def kill_a_worker(client):
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), 9)


def check_files(cluster, client):
    """Files that workers read: the loss, and observations, of which counts travel, with a worker killed."""
    from service import Server

    server = Server()
    group = kldiv.Client(server.url).group("files")
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as directory:
        tables = [{"x": rng.standard_normal(5000), "k": rng.integers(0, 4, 5000)} for _ in range(40)]
        losses = [rng.standard_normal((2, 50, 10)) for _ in range(5)]
        paths = [os.path.join(directory, f"{i}.npz") for i in range(40)]
        for path, table in zip(paths, tables):
            np.savez(path, **table)
        for i, (x, t) in enumerate(losses):
            np.savez(os.path.join(directory, f"loss{i}.npz"), input=x, target=t)
        files = [os.path.join(directory, f"loss{i}.npz") for i in range(5)]
        merged = kldiv.dask.partial_files(files, dim=-1, **LOGITS).compute()
        whole = kldiv.kl_div(*(np.concatenate(arrays) for arrays in zip(*losses)), dim=-1, **LOGITS)
        expect(same(merged.loss("mean"), whole), "the loss of files is another")
        group.reference(tables[0])
        kill_a_worker(client)
        results = kldiv.dask.observe(group, paths)
        together = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        alone = group.evaluate(together)
        for ours, theirs in zip(results, alone):
            expect((ours["n"], ours["kl"]) == (200_000, theirs["kl"]), "observations by Dask are others")
    server.stop()


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def check_example(name, output):
    loss, whole = output.split()
    expect(loss == whole, f"{name} printed {output}")


def check_mpi():
    mpirun = ["mpirun", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "plm", "isolated"]
    if os.geteuid() == 0:
        mpirun.append("--allow-run-as-root")
    for ranks in "1", "3":
        output = run([*mpirun, "-n", ranks, sys.executable, os.path.join(CLIENTS, "with_mpi.py")])
        check_example("with_mpi.py", output)


if __name__ == "__main__":
    check_module()
    check_dask()
    check_mpi()
    print("distributed: random cuts, Dask and MPI give the bits of one call")
