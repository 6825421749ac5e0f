#!/bin/sh
# Checks what stands under docker/ for whoever runs the server: rules and their tests, Alertmanager's routes, compose
# files, Kubernetes' manifests, the dashboard, and all expressions against servers that run:
# tests/system/manifests/run.sh build/kldivd. Needs node_modules (npm ci), and the packages PACKAGES_MANIFESTS of the Makefile.
set -eu
server=$(realpath "${1:-build/kldivd}")
python=${PYTHON:-/usr/bin/python3}
cd "$(dirname "$0")"
export PATH="$PWD/node_modules/.bin:$PATH"
docker=../../../docker
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# Prints the name of a step, and all that its command says if that fails.
step() {
    printf '  %-9s %s\n' "$1" "$2"
    shift 2
    "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
}

step RULES prometheus/rules.yml promtool check rules --lint=all --lint-fatal $docker/prometheus/rules.yml
step CONFIG prometheus/prometheus.yml promtool check config $docker/prometheus/prometheus.yml
step TEST prometheus/rules_test.yml promtool test rules $docker/prometheus/rules_test.yml
step CONFIG alertmanager/alertmanager.yml amtool check-config $docker/alertmanager/alertmanager.yml
for route in people:critical people:warning nobody:info; do
    step ROUTE "severity ${route#*:} to ${route%:*}" amtool config routes test \
        --config.file=$docker/alertmanager/alertmanager.yml --verify.receivers="${route%:*}" severity="${route#*:}"
done
step INHIBIT "alertmanager/alertmanager.yml" $python inhibited.py $docker/alertmanager/alertmanager.yml
if command -v docker-compose >/dev/null; then
    for profile in plain monitoring; do
        step COMPOSE "compose.yaml, profile $profile" \
            docker-compose --file $docker/compose.yaml --profile $profile config --quiet
    done
else
    echo "NOT RUN: compose.yaml by docker-compose, which is not installed; its schema is checked below"
fi
step SCHEMA "types of Grafana" ts-json-schema-generator --path dashboard.ts --type Checked --tsconfig tsconfig.json \
    --functions hide --no-type-check --expose none --no-top-ref --out "$folder/dashboard.json"
step RULES kubernetes/components/monitoring/rules.yaml make --directory ../../.. rules
echo "  SCHEMA    compose.yaml, grafana/dashboard.json; alerts and their sections"
node schemas.mjs $docker "$folder/dashboard.json"
step RELEASE "release/: notes, sums" ./release.sh
echo "  KUBECTL   kubernetes/"
node kubernetes.mjs $docker/kubernetes
step TYPES "kubernetes/, dashboard.ts" tsc -p .
echo "  RUN       Prometheus, two servers"
$python live.py "$server" $docker
