"""Roles and schemas on PostgreSQL: the grants of docker/README.md, servers that may not change tables, stores that are
migrated apart or beneath servers that run, and those of the version after this one.

usage: upgrades.py KLDIVD CLUSTER     CLUSTER: folder of cluster.sh, started"""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from run import BASKET, CLUSTER, Receiver, Server, Writers, all_pages, expect, migrate, sql, store_of, wait_until
from run import BINARY, HERE

sys.path.append(os.path.join(HERE, "../../tools"))
from documents import blocks, section

OWNER, SERVER = "kldiv_owner", "kldiv_server"


def psql(text, database, user="kldiv"):
    """Runs a text as psql reads it; fails at its first error."""
    return subprocess.run(["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", "-h", CLUSTER, "-U", user, "-d", database],
                          input=text, capture_output=True, text=True)


def texts_of_readme():
    """The grants, and what hands existing tables over."""
    texts = blocks(section("docker/README.md", "### Roles"), "sql")
    expect(len(texts) == 2, "two texts of SQL")
    return texts


def run_text(text, database):
    process = psql(text, database)
    expect(process.returncode == 0 and not process.stderr, process.stderr)


def tables(database):
    return sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1", database).split()


def number(name, database):
    return int(sql("SELECT value FROM kldiv_meta WHERE name = '%s'" % name, database))


def set_schema(version, oldest, database, also=""):
    """What a program of another version does, by the lock that all transactions take."""
    sql("BEGIN; SELECT pg_advisory_xact_lock(hashtext('kldiv'), hashtext('public')); %s;"
        "UPDATE kldiv_meta SET value = CASE name WHEN 'schema' THEN %d ELSE %d END"
        " WHERE name IN ('schema', 'oldest'); COMMIT" % (also, version, oldest), database)


def log_of(server):
    with open(server.log) as file:
        return file.read()


def refused_start(database, user, *words):
    process = subprocess.run([BINARY, "--listen", "127.0.0.1:0", "--store", store_of(database, user)],
                             capture_output=True, text=True, timeout=60)
    expect(process.returncode == 1 and process.stderr.count("\n") == 1 and all(w in process.stderr for w in words),
           process.stderr)


# ---- Roles

def use_all(a, b):
    """Has each table written, by two servers; gives the answers that are no success."""
    labels = {"bins": {"labels": ["a", "b"]}}
    path = "/monitors/g/m"
    calls = [("PUT", path + "?compare=previous:1", labels)]
    calls += [("POST", path + "/observations", {"counts": counts}) for _ in range(4) for counts in ([500, 500], [900, 10])]
    calls += [("POST", path + "/observations", {"values": ["c", "a"]}), ("PATCH", path, {"thresholds": {"warning": 0.05}}),
              ("POST", path + "/mute", {"until": 4e9}), ("DELETE", path + "/mute", None),
              ("POST", "/groups/g/mute", {"until": 4e9}), ("POST", path + "/notes", {"text": "n"}),
              ("POST", "/groups/g/notes", {"text": "n"}), ("PUT", path + "2", BASKET),
              ("POST", path + "2/observations", {"counts": [1, 2, 3]}), ("PUT", path + "2", dict(BASKET, window={"count": 500})),
              ("PUT", path + "3?window=1s,0s", BASKET), ("POST", path + "3/observations", {"counts": [1, 2, 3]}),
              ("PUT", path + "4?window=3600s", BASKET), ("POST", path + "4/observations", {"counts": [1, 2, 3]}),
              ("POST", path + "4/observations", {"counts": [1, 2, 3]}),
              ("POST", "/monitors/g/reference?include=m2", {"from": 0, "to": 4e9}), ("POST", path + "2/evaluate", {"counts": [1, 2, 3]}),
              ("POST", "/monitors/g/observations", {"columns": {"m": ["a"], "new": [1]}}), ("DELETE", path + "/windows/3", None)]
    calls += [("GET", target, None) for target in
              ("/monitors", path, path + "/windows", path + "/events", path + "/notes", "/events", "/groups", "/groups/g",
               path + "/compare?from=0&to=4e9", "/notifications", "/metrics")]
    wrong = []
    for i, (method, target, body) in enumerate(calls):
        status, answer = (a, b)[i % 2].ask(method, target, body, {"Idempotency-Key": str(i)} if method == "POST" else {})
        if status >= 300:
            wrong.append((method, target, status, answer))
    return wrong


def try_roles(folder):
    """The grants of the README are enough for all that servers do, and for nothing more."""
    sql("CREATE DATABASE roles")
    run_text(texts_of_readme()[0], "roles")
    refused_start("roles", SERVER, "it has no tables", "kldivd --migrate")
    status, output = migrate(store_of("roles", SERVER))
    expect(status == 1 and "may not change it" in output and tables("roles") == [], output)
    status, output = migrate(store_of("roles", OWNER))
    expect(status == 0 and re.search(r": schema 0 → \d+: a new store \(", output), output)
    status, output = migrate(store_of("roles", OWNER))
    expect(status == 0 and output.endswith(": nothing to do\n"), output)
    status, output = migrate(store_of("roles", SERVER))
    expect(status == 0 and output.endswith(": nothing to do\n"), output)
    for text in ("CREATE TABLE kldiv_mine (a INTEGER)", "ALTER TABLE kldiv_meta ADD COLUMN a INTEGER",
                 "DROP TABLE kldiv_notes", "TRUNCATE kldiv_notes"):
        expect(psql(text, "roles", SERVER).returncode != 0, "the servers' role may " + text)
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    file = os.path.join(folder, "roles.json")
    with open(file, "w") as out:
        json.dump([{"name": "ops", "format": "json", "url": "http://127.0.0.1:%d/" % receiver.server_address[1]}], out)
    a, b = [Server(folder, name, "--notify", file, database="roles", user=SERVER) for name in ("roles-a", "roles-b")]
    names = tables("roles")
    sql("CREATE TABLE seen (name TEXT PRIMARY KEY)", "roles")
    for name in names:
        sql("CREATE FUNCTION see_%s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
            " INSERT INTO seen VALUES ('%s') ON CONFLICT DO NOTHING; RETURN NULL; END $$;"
            "CREATE TRIGGER see AFTER INSERT OR UPDATE ON %s EXECUTE FUNCTION see_%s()" % (4 * (name,)), "roles")
    wrong = use_all(a, b)
    expect(not wrong, "%r" % wrong)
    wait_until(lambda: Receiver.messages, "a change is told")
    seen = sql("SELECT name FROM seen ORDER BY 1", "roles").split()
    expect(seen == names, "tables that were written: %r" % seen)
    expect(a.ask("DELETE", "/monitors/g")[0] == 204, "DELETE of all")
    wait_until(lambda: sql("SELECT count(*) FROM kldiv_windows", "roles") == "0", "it is swept")
    wait_until(lambda: b"kldiv_store_up 1" in b.ask("GET", "/metrics")[1], "the store is up")
    expect(a.end() == 0 and b.end() == 0, "the end")
    for server in (a, b):
        expect("denied" not in log_of(server) and "cannot be written" not in log_of(server), log_of(server))
    owners = sql("SELECT DISTINCT tableowner FROM pg_tables WHERE tablename LIKE 'kldiv%'", "roles")
    expect(owners == OWNER, owners)
    receiver.shutdown()
    print("the grants of the README are enough for servers, which change no table")


def try_handing_over(folder):
    """Tables that the servers' former role made are handed to the owner, while a server has them open."""
    sql("CREATE DATABASE handed")
    before = Server(folder, "handed-before", database="handed")
    expect(before.ask("PUT", "/monitors/g/m", BASKET)[0] == 201, "PUT")
    for text in texts_of_readme():
        run_text(re.sub("CREATE ROLE.*\n", "", text), "handed")
    expect(before.end() == 0, "the end")
    status, output = migrate(store_of("handed", OWNER))
    expect(status == 0, output)
    server = Server(folder, "handed", database="handed", user=SERVER)
    status, body = server.ask("POST", "/monitors/g/m/observations", {"counts": [1, 2, 3]})
    expect(status == 200, "%d %r" % (status, body))
    newest = number("schema", "handed")
    expect(server.end() == 0, "the end")
    set_schema(newest - 1, newest - 1, "handed")
    words = "its schema is %d, this version of kldiv needs %d" % (newest - 1, newest)
    refused_start("handed", SERVER, words, "kldivd --migrate --store LOCATION")
    # A role that may make tables is not the owner of those that are there: before version 15, every role may.
    sql("GRANT CREATE ON SCHEMA public TO PUBLIC", "handed")
    refused_start("handed", SERVER, words, "kldivd --migrate --store LOCATION")
    expect(number("schema", "handed") == newest - 1, "the schema is as it was")
    print("tables are handed to an owner; a server that is not the owner leaves a former schema as it is")


# ---- Beside another version

def expand(database, newest):
    """A schema of the version after this one, that this one may use: each table has columns more."""
    columns = ";".join("ALTER TABLE %s ADD COLUMN added TEXT, ADD COLUMN also BIGINT NOT NULL DEFAULT 7" % name
                       for name in tables(database))
    set_schema(newest + 1, newest, database, columns + "; CREATE TABLE kldiv_later (a BIGINT);"
               "CREATE INDEX kldiv_by_added ON kldiv_windows (added); INSERT INTO kldiv_meta VALUES ('later', 1)")


def stored(server, writers):
    """Numbers of values in all windows of each monitor."""
    return {name: sum(window["n"] for window in all_pages(server, "/monitors/load/%s/windows" % name, "windows"))
            for name in writers.sent}


def expect_refusal(server, newest):
    """The server says that the store is too new for it, and why."""
    words = "newer version of kldiv: its schema %d takes one that knows %d" % (newest + 1, newest + 1)
    status, body = server.ask("POST", "/monitors/load/one/observations", {"counts": [1, 1, 1]})
    expect(status == 503 and body["code"] == "store_unavailable", "%d %r" % (status, body))
    wait_until(lambda: words in server.ask("GET", "/readyz")[1].get("store_error", ""), "/readyz says why")
    wait_until(lambda: words in log_of(server), "the log says why")


def migrate_beneath(folder, servers, posting, newest):
    """Migrates the store of servers that are posted to."""
    time.sleep(1)
    expand("beside", newest)
    time.sleep(1)
    refused = sum(writers.refused for writers in posting)
    expect(refused == 0, "%d requests were refused during and after a migration that adds" % refused)
    later = Server(folder, "beside-later", database="beside", user=SERVER)
    expect(later.ask("POST", "/monitors/load/one/notes", {"text": "n"})[0] == 201, "a server that starts then")
    status, output = migrate(store_of("beside", SERVER))
    expect(status == 0 and "may be used by this one" in output and "nothing to do" in output, output)

    set_schema(newest + 1, newest + 1, "beside")
    for server in (*servers, later):
        expect_refusal(server, newest)
    before = sql("SELECT sum(changed) FROM kldiv_monitors", "beside")
    time.sleep(1.5)
    expect(sql("SELECT sum(changed) FROM kldiv_monitors", "beside") == before, "nobody writes")
    refused_start("beside", SERVER, "newer version of kldiv")
    status, output = migrate(store_of("beside", OWNER))
    expect(status == 1 and "newer version of kldiv" in output, output)

    set_schema(newest, newest, "beside")
    for server in (*servers, later):
        wait_until(lambda: server.ask("GET", "/monitors")[0] == 200, "it goes on")
    expect(later.end() == 0, "the end")


def try_beside(folder):
    """A store is migrated beneath two servers that write: to what they may use, to what they may not, and back."""
    sql("CREATE DATABASE beside")
    run_text(re.sub("CREATE ROLE.*\n", "", texts_of_readme()[0]), "beside")
    expect(migrate(store_of("beside", OWNER))[0] == 0, "--migrate")
    newest = number("schema", "beside")
    a, b = [Server(folder, name, database="beside", user=SERVER) for name in ("beside-a", "beside-b")]
    for name, window in {"one": "batch", "two": {"seconds": 1, "grace": 0}}.items():
        expect(a.ask("PUT", "/monitors/load/" + name, dict(BASKET, window=window))[0] == 201, "PUT")
    posting = [Writers(server.port, ["one", "two"], also=()) for server in (a, b)]
    try:
        migrate_beneath(folder, (a, b), posting, newest)
    finally:
        for writers in posting:
            writers.stop()
    sent = {name: sum(sum(writers.sent[name]) for writers in posting) for name in posting[0].sent}
    for server in (a, b):
        expect(stored(server, posting[0]) == sent, "%r was sent, %r is stored" % (sent, stored(server, posting[0])))

    set_schema(newest - 1, newest - 1, "beside")
    wait_until(lambda: a.ask("POST", "/monitors/load/one/observations", {"counts": [1, 1, 1]})[0] == 503, "503")
    wait_until(lambda: "kldivd --migrate --store LOCATION" in a.ask("GET", "/readyz")[1].get("store_error", ""),
               "a store that is behind is left to its owner")
    set_schema(newest, newest, "beside")
    for server in (a, b):
        wait_until(lambda: server.ask("GET", "/monitors")[0] == 200, "it goes on")
        expect(server.end() == 0, "the end")
    print("servers go on beside a schema of the next version, refuse one that is not for them, and lose none of %d posts"
          % sum(writers.posts for writers in posting))


def try_long(folder):
    """A migration takes as long as it needs; a server that starts meanwhile waits for it."""
    sql("CREATE DATABASE long")
    run_text(re.sub("CREATE ROLE.*\n", "", texts_of_readme()[0]), "long")
    sql("CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT FROM"
        " pg_event_trigger_ddl_commands() WHERE object_identity LIKE '%kldiv_outbox_by_message') THEN"
        " PERFORM pg_sleep(22); END IF; END $$;"
        "CREATE EVENT TRIGGER wait ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION wait()", "long")
    migrating = subprocess.Popen([BINARY, "--migrate", "--store", store_of("long", OWNER)], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "long") == "1",
               "the migration is under way")
    server = Server(folder, "long", database="long", user=SERVER)
    expect(migrating.poll() is None, "the migration goes on")
    status, body = server.ask("PUT", "/monitors/g/m", BASKET)
    expect(status == 503, "while it does: %d %r" % (status, body))
    output = migrating.communicate(timeout=60)[0]
    expect(migrating.returncode == 0 and "a new store (2" in output, output)
    wait_until(lambda: server.ask("PUT", "/monitors/g/m", BASKET)[0] == 201, "it finds the store")
    expect(server.end() == 0, "the end")
    print("a migration of 22 s is waited for")


def main():
    with tempfile.TemporaryDirectory() as folder:
        try_roles(folder)
        failed = []

        def long():
            try:
                try_long(folder)
            except BaseException as problem:  # to be raised by the main thread
                failed.append(problem)

        thread = threading.Thread(target=long)
        thread.start()
        try:
            try_handing_over(folder)
            try_beside(folder)
        finally:
            thread.join()
        if failed:
            raise failed[0]


def end_all():
    """Kills the servers that a failure has left."""
    for process in Server.started:
        if process.poll() is None:
            process.kill()


if __name__ == "__main__":
    try:
        main()
    finally:
        end_all()
