#!/bin/sh
# Lints api/openapi.json, generates TypeScript clients, compiles them with all checks, and calls the server with them; then
# with the package of TypeScript as it is installed from its tarball, and with the lines of pages about it. Its types are
# compiled by several versions of tsc, and linters see how it is packed. Then the packages of Python, TypeScript and R, and
# curl, put one table and observe each other's.
# usage: tests/system/contract/run.sh build/kldivd build/npm/kldiv-VERSION.tgz. Needs node_modules, also those in compilers/
# (npm ci).
set -eu
server=$(realpath "$1") package=$(realpath "$2")
cd "$(dirname "$0")"
export PATH="$PWD/node_modules/.bin:$PATH"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
document=../../../api/openapi.json

echo "  LINT  api/openapi.json"
spectral lint --quiet --fail-severity=hint $document &
linting=$!
redocly lint --format=json $document 2>/dev/null | tr -d ' \n' |
    grep -q '"totals":{"errors":0,"warnings":0,"ignored":0}' ||
    { redocly lint --format=stylish $document; exit 1; }
wait $linting

folder=$(mktemp -d)
"$server" --listen 127.0.0.1:0 --port-file "$folder/port" --cors-origin '*' --log-level warning &
pid=$!
trap 'kill $pid; wait $pid || true; rm -r "$folder"' EXIT
for _ in $(seq 100); do [ -s "$folder/port" ] && break; sleep 0.1; done
KLDIV_URL=http://127.0.0.1:$(cat "$folder/port")
export KLDIV_URL

echo "  MAKE  clients by openapi-typescript, orval, @hey-api/openapi-ts, openapi-typescript-codegen"
rm -rf generated
mkdir generated
orval --config orval.config.cjs >/dev/null &
making=$!
(cd "$folder" && npm install --silent --offline --no-audit --no-fund "$package")
cp "$folder/node_modules/kldiv/dist/esm/schema.d.ts" generated
node node_modules/openapi-typescript-codegen/bin/index.js --input $document --output generated/codegen --useOptions
openapi-ts --input $document --output generated/hey_api --client @hey-api/client-fetch --silent --no-log-file
# Node wants whole names of files in imports.
find generated/codegen generated/hey_api -name '*.ts' -exec sed -i -E \
    -e "s#from '\./client'#from './client/index.js'#" -e "/\.js'/! s#from '(\.[^']*)'#from '\1.js'#" {} +
wait $making
tsc
for client in with_*.ts; do
    echo "  RUN   $client"
    node "generated/js/${client%.ts}.js" "$KLDIV_URL"
done

echo "  RUN   kldiv, the package of TypeScript"
cp package.mts faults.mts "$folder"
python3 ../../tools/documents.py api/clients/typescript/README.md ts "$folder/package-%d.mts"
python3 ../../tools/documents.py api/clients/README.md ts "$folder/page-%d.mts"
sed -i "s#http://127.0.0.1:8080#$KLDIV_URL#" "$folder"/*-?.mts
tools=$PWD/compilers/node_modules
node "$tools/typescript-7.0/bin/tsc" --ignoreConfig --strict --skipLibCheck --target es2022 --module nodenext \
    --lib es2022,dom,dom.iterable --types node --typeRoots "$PWD/node_modules/@types" "$folder"/*.mts
node "$folder/faults.mjs" "$KLDIV_URL"
node "$folder/package.mjs" "$KLDIV_URL"
node browser.mjs "$folder" "$KLDIV_URL"
node "$folder/package-1.mjs" | grep -q '^age: critical, KL .* nats. mean 24.5 → 44.5, .* values above 49: 0 % → 40 %'
node "$folder/package-2.mjs" | grep -q '^422 .*shape'
node "$folder/page-1.mjs" | grep -q '^0.247258'

echo "  RUN   pairs of clients"
mkdir "$folder/R"
R CMD INSTALL --no-docs --no-test-load --no-byte-compile --library="$folder/R" ../../../api/clients/R >"$folder/log" 2>&1 ||
    { cat "$folder/log"; exit 1; }
cp pairs.mjs "$folder"
R_LIBS="$folder/R" LC_ALL=C.UTF-8 PYTHONPATH=../../../api/clients/python \
    /usr/bin/python3 -B -W ignore pairs.py "$KLDIV_URL" "$folder"

echo "  LINT  kldiv, the package of TypeScript, by publint, attw, and tsc 5.0, 5.4, 7.0"
cp types.ts halves.ts "$folder"
checks() { # VERSION FILE LIBRARIES MORE
    printf '{"compilerOptions": {"strict": true, "noEmit": true, "exactOptionalPropertyTypes": true, "types": [], %s
        "lib": [%s"dom", "dom.iterable"], "target": "es2022", "module": "nodenext"}, "files": ["%s"]}' \
        "$4" "$3" "$2" > "$folder/check.json"
    node "$tools/typescript-$1/bin/tsc" -p "$folder/check.json"
}
checks 5.0 types.ts '"es2022", ' '"skipDefaultLibCheck": true,'
checks 5.4 types.ts '"es2022", ' '"skipLibCheck": true,'
checks 7.0 types.ts '"es2022", ' ''
checks 7.0 halves.ts '"esnext", ' ''
"$tools/.bin/publint" --strict "$package" >"$folder/log" || { cat "$folder/log"; exit 1; }
if node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
    "$tools/.bin/attw" "$package" >"$folder/log" || { cat "$folder/log"; exit 1; }
else
    echo "NOT RUN: attw, which needs Node 20"
fi
