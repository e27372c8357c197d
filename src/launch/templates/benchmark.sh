{%- from "shell/check" import check -%}
#!/usr/bin/env bash
{{ ("Measures the running deployment with the problem's own traffic: " ~ benchmark ~ ".") | comment }}
{{ (writer ~ " Plan: " ~ plan) | comment }}
{{ ("Problem: " ~ problem) | comment }}
# Predicted:
{%- for line in predicted %}
{{ ("  " ~ line) | comment }}
{%- endfor %}
set -euo pipefail
{%- if needs %}
{{ check(needs) }}
{%- endif %}
export HOST="${HOST:-127.0.0.1}"
export PORT="${PORT:-{{ port }}}"
exec {{ command }}
