#!/usr/bin/env bash
# {{ title }}: places the model on the running nodes.
# Written by mantile-opt {{ written_by }} for {{ runtime }} {{ runtime_version }}. Plan: {{ plan }}
# Problem: mantile-opt {{ flags }}
set -euo pipefail
{{ script }}
