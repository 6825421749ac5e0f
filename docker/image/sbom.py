#!/usr/bin/env python3
"""Lists what the image holds, as SPDX 2.3 in JSON on standard output.

Usage: docker/image/sbom.py FOLDER ORIGINS, in the stage of the build that made FOLDER. ORIGINS has a line for
each library, and one for the time zones: its path in this Debian, whose package manager knows its version and licence. Writes the notices
of all licences into FOLDER as well. SOURCE_DATE_EPOCH is the time that it tells."""
import datetime
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid

ROOT, ORIGINS = sys.argv[1:]
DOCUMENTS = ROOT + "/usr/share/doc/kldiv"
NOTICES = DOCUMENTS + "/copyright.gz"
WEB = "api/web/"
PAGES = ("uplot", "swagger-ui-dist")
NONE = "NOASSERTION"

# Names of Debian's copyright files (DEP 5) that SPDX has under another.
NAMES = {
    "expat": "MIT", "mit": "MIT", "zlib": "Zlib", "isc": "ISC", "curl": "curl", "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause", "apache-2.0": "Apache-2.0", "openldap-2.8": "OLDAP-2.8", "bsl-1.0": "BSL-1.0",
}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def digest(path, algorithm):
    with open(path, "rb") as file:
        return hashlib.new(algorithm, file.read()).hexdigest()


def identifier(*words):
    return "SPDXRef-" + "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in words)


# ---- Licences

def known(name):
    """The SPDX identifier of one of Debian's names, or None."""
    gnu = re.fullmatch(r"(L?GPL|GFDL|AGPL)-(\d)(\.\d)?(\+?)", name)
    if gnu:
        return f"{gnu[1]}-{gnu[2]}{gnu[3] or '.0'}-{'or-later' if gnu[4] else 'only'}"
    return NAMES.get(name.lower())


def licenses_of(package, text, extracted):
    """The licences that a copyright file names, all of which hold for some file of the source: an expression.
    What SPDX does not know is a reference to a text, which goes to `extracted`."""
    terms, see = [], f"See {package} in /usr/share/doc/kldiv/copyright.gz"
    names = re.findall(r"^License:[ \t]*(\S.*)$", text, re.M) if "Format:" in text[:2000] else []
    for name in dict.fromkeys(name.strip() for name in names):
        parts = [known(part) for part in re.split(r" or | and ", name)]
        if all(parts) and not (" or " in name and " and " in name):
            joint = " OR " if " or " in name else " AND "
            terms.append(f"({joint.join(parts)})" if len(parts) > 1 else parts[0])
            continue
        reference = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", f"{package}-{name}").strip("-.")
        own = re.search(rf"^License:[ \t]*{re.escape(name)}[ \t]*\n((?:[ \t].*\n?)+)", text, re.M)
        extracted[reference] = {"licenseId": reference, "name": name, "extractedText": own[1] if own else see}
        terms.append(reference)
    if not terms:
        reference = f"LicenseRef-{package}-copyright"
        extracted[reference] = {"licenseId": reference, "name": f"copyright of {package}", "extractedText": see}
        terms.append(reference)
    return " AND ".join(sorted(set(terms)))


# ---- Packages

def owners(paths):
    """The installed Debian package of each file. dpkg may know the path with or without /usr."""
    found = {}
    for path in paths:
        other = path[4:] if path.startswith("/usr/") else "/usr" + path
        for candidate in (path, other):
            answer = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
            if answer.returncode == 0:
                found[path] = answer.stdout.split(": ")[0]
                break
        else:
            sys.exit(f"sbom.py: no package has {path}")
    return found


def debian_package(name, extracted, notices):
    form = "${Package}\n${Version}\n${Architecture}\n${source:Package}\n${source:Version}\n${Maintainer}\n${Homepage}"
    package, version, machine, source, source_version, maintainer, home = subprocess.run(
        ["dpkg-query", "-W", "-f", form, name], capture_output=True, text=True, check=True).stdout.split("\n")
    text = read(f"/usr/share/doc/{package}/copyright")
    notices.append((f"{package} {version}", text))
    return {
        "SPDXID": identifier("Package", package), "name": package, "versionInfo": version,
        "supplier": "Organization: Debian", "originator": "Organization: " + re.sub(" <(.*)>", r" (\1)", maintainer),
        "sourceInfo": f"built from Debian's source package {source} {source_version}",
        **({"homepage": home} if home else {}),
        "downloadLocation": NONE, "licenseConcluded": NONE,
        "licenseDeclared": licenses_of(package, text, extracted), "copyrightText": NONE,
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{package}@{version.replace('+', '%2B').replace(':', '%3A')}"
                                f"?arch={machine}&distro=debian-12"}],
    }


def page_package(name, notices):
    """A package of npm, files of which are in the program."""
    folder = f"{WEB}node_modules/{name}/"
    told = json.loads(read(folder + "package.json"))
    notices.append((f"{name} {told['version']} (npm)", read(folder + "LICENSE")))
    return {
        "SPDXID": identifier("Package", "npm", name), "name": name, "versionInfo": told["version"],
        "downloadLocation": f"https://registry.npmjs.org/{name}/-/{name}-{told['version']}.tgz",
        "filesAnalyzed": False, "licenseConcluded": NONE, "licenseDeclared": told["license"], "copyrightText": NONE,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:npm/{name}@{told['version']}"}],
    }


def own_package(notices):
    version = re.search(r'^#define KLDIV_VERSION "(.*)"', read("lib/kldiv.h"), re.M)[1]
    notices.append((f"kldiv {version}", read("LICENSE")))
    return {
        "SPDXID": identifier("Package", "kldiv"), "name": "kldiv", "versionInfo": version,
        "primaryPackagePurpose": "APPLICATION", "downloadLocation": NONE, "licenseConcluded": "MIT",
        "licenseDeclared": "MIT", "copyrightText": "Copyright (c) 2026 The kldiv authors",
    }


# ---- Files

def files_in(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield path


def file_entry(path):
    name = "." + path[len(ROOT):]
    return {
        "SPDXID": identifier("File", name.replace("+", ".plus.").replace("_", ".")), "fileName": name, "licenseConcluded": NONE,
        "licenseInfoInFiles": [NONE], "copyrightText": NONE,
        "checksums": [{"algorithm": "SHA1", "checksumValue": digest(path, "sha1")},
                      {"algorithm": "SHA256", "checksumValue": digest(path, "sha256")}],
    }


def verification_code(files):
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}


def write_notices(notices):
    text = "\n".join(f"==== {title}\n\n{text}" for title, text in notices)
    with open(NOTICES, "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as file:
        file.write(text.encode())


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def main():
    extracted, notices = {}, []
    kldiv = own_package(notices)
    packages = {"": kldiv}
    owner_of = {path.rsplit("/", 1)[1]: name for path, name in owners(read(ORIGINS).split()).items()}
    for name in sorted(set(owner_of.values())):
        packages[name] = debian_package(name, extracted, notices)
    pages = [page_package(name, notices) for name in PAGES if os.path.exists(f"{WEB}node_modules/{name}")]
    write_notices(notices)

    held, relations = {name: [] for name in packages}, []
    for path in files_in(ROOT):
        name = "zoneinfo" if path.startswith(ROOT + "/usr/share/zoneinfo/") else os.path.basename(path)
        held[owner_of.get(name, "")].append(file_entry(path))
    for name, package in packages.items():
        if held[name]:
            package["packageVerificationCode"] = verification_code(held[name])
        else: # its archive is a part of the program
            package["filesAnalyzed"] = False
            relations.append(relation(kldiv["SPDXID"], "STATIC_LINK", package["SPDXID"]))
        relations += [relation(package["SPDXID"], "CONTAINS", file["SPDXID"]) for file in held[name]]
        if name and held[name]:
            relations.append(relation(kldiv["SPDXID"], "DEPENDS_ON", package["SPDXID"]))
    relations += [relation(kldiv["SPDXID"], "CONTAINS", package["SPDXID"]) for package in pages]

    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"kldiv-{kldiv['versionInfo']}-image",
        "creationInfo": {
            "created": datetime.datetime.utcfromtimestamp(epoch).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: kldiv-sbom.py-{kldiv['versionInfo']}"]},
        "packages": [*packages.values(), *pages], "files": [file for group in held.values() for file in group],
        "hasExtractedLicensingInfos": [extracted[name] for name in sorted(extracted)],
        "relationships": [relation("SPDXRef-DOCUMENT", "DESCRIBES", kldiv["SPDXID"]), *relations],
    }
    content = json.dumps(document, sort_keys=True)
    document["documentNamespace"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    json.dump(document, sys.stdout, indent=1)
    print()


main()
