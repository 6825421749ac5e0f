#!/bin/sh
# Lints api/openapi.json, generates TypeScript clients, compiles them with all checks, and calls the
# server with them: tests/contract/run.sh build/kldivd. Needs node_modules (npm ci).
set -eu
server=$(realpath "${1:-build/kldivd}")
cd "$(dirname "$0")"
export PATH="$PWD/node_modules/.bin:$PATH"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
document=../../api/openapi.json

echo "  LINT  api/openapi.json"
spectral lint --quiet --fail-severity=hint $document &
linting=$!
redocly lint --format=json $document 2>/dev/null | tr -d ' \n' |
    grep -q '"totals":{"errors":0,"warnings":0,"ignored":0}' ||
    { redocly lint --format=stylish $document; exit 1; }
wait $linting

folder=$(mktemp -d)
"$server" --listen 127.0.0.1:0 --port-file "$folder/port" --log-level warning &
pid=$!
trap 'kill $pid; wait $pid || true; rm -r "$folder"' EXIT
for _ in $(seq 100); do [ -s "$folder/port" ] && break; sleep 0.1; done
KLDIV_URL=http://127.0.0.1:$(cat "$folder/port")
export KLDIV_URL

echo "  MAKE  clients by openapi-typescript, orval, @hey-api/openapi-ts, openapi-typescript-codegen"
rm -rf generated
{ openapi-typescript $document -o generated/schema.d.ts && orval --config orval.config.cjs; } >/dev/null &
making=$!
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
