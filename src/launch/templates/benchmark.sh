#!/usr/bin/env bash
# Measures the running deployment with the problem's own traffic: {{ benchmark }}.
# Written by mantile-opt {{ written_by }} for {{ runtime }} {{ runtime_version }}. Plan: {{ plan }}
# Problem: mantile-opt {{ flags }}
# Predicted:
{%- for line in predicted %}
#   {{ line }}
{%- endfor %}
set -euo pipefail
export HOST="${HOST:-127.0.0.1}"
export PORT="${PORT:-{{ port }}}"
exec {{ command }}
