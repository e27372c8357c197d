#!/usr/bin/env bash
# Starts every process of the plan on this host; when one stops, all stop.
{{ (writer ~ " Plan: " ~ plan) | comment }}
set -euo pipefail
{%- if router or request %}
command -v curl >/dev/null || { echo "curl is missing: install the package curl of the system" >&2; exit 1; }
{%- endif %}
cd "$(dirname "$0")"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
{%- for worker in workers %}
{%- for slot in worker.slots %}
{% if router %}env -u PORT REPLICA={{ slot.replica }} bash{% else %}REPLICA={{ slot.replica }} bash{% endif %} ./{{ worker.name | plain }}.sh &
{%- endfor %}
{%- endfor %}
{%- if router %}
for port in{% for worker in workers %}{% for slot in worker.slots %} {{ slot.port }}{% endfor %}{% endfor %}; do
  until curl --silent --fail --output /dev/null "http://127.0.0.1:$port{{ health | plain }}"; do sleep 2; done
done
bash ./router.sh &
{%- endif %}
{%- if request %}
until curl --silent --fail --output /dev/null "http://127.0.0.1:{{ port }}{{ health | plain }}"; do sleep 2; done
bash ./place.sh
{%- endif %}
wait -n
