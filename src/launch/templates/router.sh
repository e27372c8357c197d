{%- from "shell/check" import check -%}
#!/usr/bin/env bash
{{ ("Spreads the requests over the workers: " ~ router.package ~ ".") | comment }}
{{ (writer ~ " Plan: " ~ plan) | comment }}
set -euo pipefail
{%- if router.needs %}
{{ check(router.needs) }}
{%- endif %}
cd "$(dirname "$0")"
export HOST="${HOST:-127.0.0.1}"
export PORT="${PORT:-{{ router.port }}}"
{%- if not one_host %}
{%- for host in range(hosts) %}
: "${HOST_{{ host }}:?address of host {{ host }}}"
{%- endfor %}
{%- if router.script.files %}
folder="$(mktemp -d)"
{%- for file in router.script.files %}
text="$(<{{ file.name | plain }})"
{%- for host in range(hosts) %}
text="${text//'${HOST_{{ host }}}'/$HOST_{{ host }}}"
{%- endfor %}
printf '%s\n' "$text" >"$folder/{{ file.name | plain }}"
{%- endfor %}
cd "$folder"
{%- endif %}
{%- endif %}
exec {{ router.script.command }}
