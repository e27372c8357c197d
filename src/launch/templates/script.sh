{%- from "shell/check" import check -%}
{#- Its number among the replicas of a host. -#}
{%- set number %}{% if worker.ports < worker.replicas %} % {{ worker.ports }}{% endif %}{% endset -%}
#!/usr/bin/env bash
{{ (title ~ ": " ~ worker.name ~ ", " ~ worker.label ~ " on " ~ worker.devices ~ (" devices." if worker.devices > 1 else " device.")) | comment }}
{{ (writer ~ " Plan: " ~ plan) | comment }}
{{ ("Problem: " ~ problem) | comment }}
{%- if worker.start_ranks %}
# Run it on each of the {{ worker.devices }} devices of a replica at once. In a job of Slurm:
{{ ("  " ~ (worker.start_ranks[0] | join(" ")) ~ " bash " ~ worker.name ~ ".sh") | comment }}
# Without a scheduler, with the names of the hosts in the file `hosts`:
{{ ("  " ~ (worker.start_ranks[1] | join(" ")) ~ " bash " ~ worker.name ~ ".sh") | comment }}
{%- elif worker.hosts > 1 %}
# Run it on each of the {{ worker.hosts }} hosts of a replica: HOST_RANK=0 to {{ worker.hosts - 1 }}; FIRST_HOST is the address of rank 0.
{%- endif %}
{%- if request %}
# Run it on each of the {{ worker.replicas }} hosts; place.sh then places the model.
{%- elif worker.replicas > 1 %}
# {{ worker.replicas }} like replicas: REPLICA=0 to {{ worker.replicas - 1 }}.
{%- endif %}
set -euo pipefail
{%- if worker.needs %}
{{ check(worker.needs) }}
{%- endif %}
export HOST="${HOST:-127.0.0.1}"
REPLICA="${REPLICA:-0}"
export PORT="${PORT:-{% if request %}{{ worker.port }}{% else %}$(({{ worker.port }} + REPLICA{{ number }})){% endif %}}"
{%- if "MODEL" in worker.script.variables %}
MODEL="${MODEL:?{{ model_hint | message }}}"
{%- endif %}
{%- if "DEVICES" in worker.script.variables %}
order={{ device_order | shell }}
DEVICES="${DEVICES:?$order}"
{%- endif %}
{%- if "HOSTFILE" in worker.script.variables %}
hosts={{ (host_file ~ ("; " ~ device_order if device_order else "")) | shell }}
HOSTFILE="${HOSTFILE:?$hosts}"
{%- endif %}
{%- if "RPC_SERVERS" in worker.script.variables %}
servers={{ remote_order | shell }}
RPC_SERVERS="${RPC_SERVERS:?$servers}"
{%- endif %}
{%- if "ADDRESS" in worker.script.variables %}
ADDRESS="${ADDRESS:-$HOST}"
{%- endif %}
{%- if "TRANSFER_PORT" in worker.script.variables %}
TRANSFER_PORT="${TRANSFER_PORT:-$(({{ worker.transfer_port }} + REPLICA{{ number }} * {{ transfer_ports }}))}"
{%- endif %}
{%- if worker.hosts > 1 and not worker.start_ranks %}
HOST_RANK="${HOST_RANK:?rank of this host, 0 to {{ worker.hosts - 1 }}}"
FIRST_HOST="${FIRST_HOST:?address of the host of rank 0}"
{%- endif %}
{%- if worker.script_follower and "FIRST_DP_RANK" in worker.script_follower.variables %}
FIRST_DP_RANK="$((HOST_RANK * {{ worker.local_dp }}))"
{%- endif %}
{%- if visible and one_host and (worker.replicas > 1 or worker.slots[0].first_device > 0) %}
first=$(({{ worker.slots[0].first_device }} + REPLICA * {{ worker.devices }}))
export {{ visible | plain }}="${ {{- visible | plain }}:-$(seq -s, "$first" $((first + {{ worker.devices - 1 }})))}"
{%- endif %}
{%- for variable in worker.script.environment %}
export {{ variable.name | plain }}={{ variable.word | shell }}  {{ variable.why | comment }}
{%- endfor %}
{%- if worker.script.yaml %}
cd "$(dirname "$0")"
{%- endif %}
args=(
{%- for option in worker.script.options %}
  {{ option.words | shell }}  {{ option.why | comment }}
{%- endfor %}
)
{%- if worker.script_follower %}
if ((HOST_RANK > 0)); then
  args=(
{%- for option in worker.script_follower.options %}
    {{ option.words | shell }}  {{ option.why | comment }}
{%- endfor %}
  )
fi
{%- endif %}
exec {{ worker.script.program | shell }} "${args[@]}"
