#!/usr/bin/env python3
"""sbom.py VERSION PINS: writes a CycloneDX 1.6 bill of materials of the programs to standard output.

Reads the dependency graph as `swift package show-dependencies --format json` writes it from standard input. PINS is the
Package.resolved of the same build. The checkouts give the licenses, and the revisions of the copies of BoringSSL in them.
SOURCE_DATE_EPOCH is the time of the bill; the same input gives the same bytes.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

LICENSES = [
    ("Apache-2.0", "Apache License"),
    ("MIT", "Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", "Neither the name of"),
]


def fail(message):
    sys.exit(f"sbom: {message}")


def license_of(checkout):
    """The SPDX name of the license of a checkout."""
    for path in sorted(checkout.glob("LICEN[CS]E*")):
        text = " ".join(path.read_text(encoding="utf-8").split())
        for name, words in LICENSES:
            if words in text:
                return [{"license": {"id": name}}]
    fail(f"{checkout.name} has no license that is known here")


def reference(name):
    """The package URL of the Swift package at `address@version`."""
    address, _, version = name.rpartition("@")
    return "pkg:swift/" + re.sub(r"^https://|\.git$", "", address) + "@" + version


def copied_libraries(checkout, parent):
    """The copies of BoringSSL in a checkout, whose files say which revision they are of."""
    for path in sorted(checkout.glob("Sources/*BoringSSL/hash.txt")):
        revision = re.search(r"at revision ([0-9a-f]{40})", path.read_text(encoding="utf-8"))
        if not revision:
            fail(f"{path} names no revision")
        yield {
            "type": "library",
            "bom-ref": f"{parent}#{path.parent.name}",
            "name": "boringssl",
            "version": revision[1],
            "licenses": license_of(checkout),
            "cpe": "cpe:2.3:a:google:boringssl:-:*:*:*:*:*:*:*",
            "externalReferences": [{"type": "vcs", "url": "https://boringssl.googlesource.com/boringssl"}],
        }


def system_libraries():
    """What the programs take from outside of the graph: linked statically, dynamically, or loaded at run time."""
    swift = subprocess.run(["swift", "--version"], check=True, capture_output=True, text=True).stdout
    swift = re.search(r"Swift version ([0-9.]+)", swift)[1]

    def library(name, version, license_name, scope, description):
        return {
            "type": "library",
            "bom-ref": f"pkg:generic/{name}@{version}",
            "name": name,
            "version": version,
            "description": description,
            "scope": scope,
            "licenses": [{"license": {"id": license_name}}],
            "purl": f"pkg:generic/{name}@{version}",
        }

    tested = dict(
        line.split()[:2]
        for line in pathlib.Path("Scripts/tested-versions.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    compiler = subprocess.run(["clang", "-print-file-name=libstdc++.a"], check=True, capture_output=True, text=True)
    gcc = re.search(r"/gcc/[^/]+/([0-9.]+)/", os.path.realpath(compiler.stdout.strip()) + "/")
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    return [
        library("gcc-runtime", gcc[1] if gcc else "unknown", "GPL-3.0-with-GCC-exception", "required",
                "libgcc, and libstdc++ where it is a static library, linked statically"),
        library("glibc", glibc, "LGPL-2.1-or-later", "required", "linked dynamically"),
        library("libsecret", tested["libsecret"], "LGPL-2.1-or-later", "optional", "loaded for the desktop's keyring"),
        library("libsodium", tested["libsodium"], "ISC", "required", "linked dynamically"),
        library("swift", swift, "Apache-2.0", "required", "the runtime and standard library, linked statically"),
    ]


def main():
    version, pins = sys.argv[1:]
    revisions = {
        pin["identity"]: pin["state"]["revision"]
        for pin in json.loads(pathlib.Path(pins).read_text(encoding="utf-8"))["pins"]
    }
    root = json.load(sys.stdin)
    main_reference = f"pkg:generic/tokenvault@{version}"
    components, edges = {}, {main_reference: set()}

    def visit(package, parent):
        name = reference(f"{package['url']}@{package['version']}")
        edges[parent].add(name)
        if name in components:
            return
        checkout = pathlib.Path(package["path"])
        identity = package["identity"]
        if identity not in revisions:
            fail(f"{identity} is not pinned")
        edges[name] = set()
        component = {
            "type": "library",
            "bom-ref": name,
            "name": identity,
            "version": package["version"],
            "licenses": license_of(checkout),
            "purl": name,
            "externalReferences": [
                {"type": "vcs", "url": f"{package['url']}", "comment": f"revision {revisions[identity]}"}
            ],
        }
        copies = list(copied_libraries(checkout, name))
        if copies:
            component["components"] = copies
        components[name] = component
        for dependency in package["dependencies"]:
            visit(dependency, name)

    for package in root["dependencies"]:
        visit(package, main_reference)
    if not components:
        fail("the graph has no packages")
    for component in system_libraries():
        components[component["bom-ref"]] = component
        edges[main_reference].add(component["bom-ref"])
        edges[component["bom-ref"]] = set()

    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": main_reference,
                "name": "tokenvault",
                "version": version,
                "licenses": [{"license": {"id": "MIT"}}],
                "purl": main_reference,
            },
        },
        "components": [components[name] for name in sorted(components)],
        "dependencies": [{"ref": name, "dependsOn": sorted(edges[name])} for name in sorted(edges)],
    }
    text = json.dumps(bill, sort_keys=True)
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    print(json.dumps(bill, indent=2, sort_keys=True))


main()
