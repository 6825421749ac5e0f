#!/usr/bin/env python3
"""Lists what a release is made of, as CycloneDX 1.6 in JSON on standard output: its files with their sums; Debian's
packages that were installed when it was built, of dpkg-buildpackage's .buildinfo; npm's packages, of their lockfiles.
What the image holds is in the image's own list, SPDX, which this one names.

Usage: docker/release/bom.py FOLDER VERSION REVISION BUILDINFO. SOURCE_DATE_EPOCH is the time that it tells."""
import base64
import datetime
import hashlib
import json
import os
import re
import sys
import uuid
from urllib.parse import quote

FOLDER, VERSION, REVISION, BUILDINFO = sys.argv[1:]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Lockfiles, and whether files of their packages are in the release.
LOCKFILES = {"api/web/package-lock.json": ("uplot", "swagger-ui-dist"), "tests/system/contract/package-lock.json": ()}
MADE_HERE = ("SHA256SUMS", "NOTES.md", f"kldiv-{VERSION}.cdx.json")


def sha256(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return [{"alg": "SHA-256", "content": hashlib.sha256(file.read()).hexdigest()}]


def release_files():
    return [{"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": sha256(name)}
            for name in sorted(os.listdir(FOLDER)) if name not in MADE_HERE and not name.endswith(".spdx.json")]


def debian_packages():
    """Those of Installed-Build-Depends: `NAME[:ARCH] (= VERSION)`, with commas between."""
    with open(BUILDINFO, encoding="utf-8") as file:
        text = file.read()
    machine = re.search(r"^Build-Architecture: (\S+)", text, re.M)[1]
    field = re.search(r"^Installed-Build-Depends:((?:\n .*)+)", text, re.M)[1]
    for name, other, version in re.findall(r"^ (\S+?)(?::(\S+))? \(= (\S+?)\),?$", field, re.M):
        purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={other or machine}"
        yield {"type": "library", "bom-ref": purl, "name": name, "version": version, "scope": "excluded", "purl": purl}


def npm_packages(lockfile, released):
    with open(os.path.join(ROOT, lockfile), encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for path, told in packages.items():
        if not path or "version" not in told:
            continue
        name = path.rsplit("node_modules/", 1)[1]
        purl = f"pkg:npm/{quote(name, safe='/')}@{told['version']}"
        component = {"type": "library", "bom-ref": purl, "name": name, "version": told["version"], "purl": purl,
                     "scope": "required" if name in released else "excluded"}
        algorithm, _, digest = told.get("integrity", "").partition("-")
        if algorithm == "sha512":
            component["hashes"] = [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]
        if "license" in told:
            component["licenses"] = [{"license": {"name": told["license"]}}]
        yield component


def main():
    packages = {package["bom-ref"]: package for package in debian_packages()}
    for lockfile, released in LOCKFILES.items():
        for package in npm_packages(lockfile, released):
            packages.setdefault(package["bom-ref"], package)
    own = f"pkg:generic/kldiv@{quote(VERSION)}"
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application", "bom-ref": own, "name": "kldiv", "version": VERSION, "purl": own,
                "licenses": [{"license": {"id": "MIT"}}], "components": release_files(),
                "properties": [{"name": "kldiv:revision", "value": REVISION}],
                "externalReferences": [{"type": "bom", "url": name, "hashes": sha256(name)}
                                       for name in sorted(os.listdir(FOLDER)) if name.endswith(".spdx.json")]}},
        "components": [packages[ref] for ref in sorted(packages)],
        "dependencies": [{"ref": own, "dependsOn": sorted(packages)}],
    }
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))}"
    json.dump(document, sys.stdout, indent=1)
    print()


main()
