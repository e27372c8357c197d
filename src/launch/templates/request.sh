#!/usr/bin/env bash
{{ (title ~ ": places the model on the running nodes.") | comment }}
{{ (writer ~ " Plan: " ~ plan) | comment }}
{{ ("Problem: " ~ problem) | comment }}
set -euo pipefail
{{ script }}
