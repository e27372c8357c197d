#!/usr/bin/env bash
#SBATCH --job-name={{ name | plain }}
#SBATCH --nodes={{ hosts }}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={{ devices_on_host if hosts > 1 else devices_used }}
#SBATCH --exclusive
{{ title | comment }}
{{ (writer ~ " Plan: " ~ plan) | comment }}
{{ ("Problem: " ~ problem) | comment }}
# Submit it from the folder of these files: sbatch slurm.sh
set -euo pipefail
{%- if router %}
command -v curl >/dev/null || { echo "curl is missing: install the package curl of the system" >&2; exit 1; }
{%- endif %}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
{%- for host in range(hosts) %}
export HOST_{{ host }}="${nodes[{{ host }}]}"
{%- endfor %}
on() { local node="$1"; shift; srun --nodes=1 --ntasks=1 --overlap --nodelist="$node" env "$@" & }
{%- for worker in workers %}
{%- for slot in worker.slots %}
{%- if worker.start_ranks %}
{{ worker.start_ranks[0] | shell }} --overlap --nodelist={% for host in slot.hosts %}"$HOST_{{ host }}"{% if not loop.last %},{% endif %}{% endfor %} env HOST=0.0.0.0 ADDRESS="$HOST_{{ slot.hosts[0] }}" REPLICA={{ slot.replica }} PORT={{ slot.port }} TRANSFER_PORT={{ slot.transfer_port }}
{%- if visible %} {{ visible | plain }}={{ slot.device_ids | join(",") | shell }}{% endif %} bash ./{{ worker.name | plain }}.sh &
{%- else %}
{%- for host in slot.hosts %}
on "$HOST_{{ host }}" HOST=0.0.0.0 ADDRESS="$HOST_{{ host }}" REPLICA={{ slot.replica }} PORT={{ slot.port }} TRANSFER_PORT={{ slot.transfer_port }}
{%- if worker.hosts > 1 %} HOST_RANK={{ loop.index0 }} FIRST_HOST="$HOST_{{ slot.hosts[0] }}"{% endif %}
{%- if visible %} {{ visible | plain }}={{ slot.device_ids | join(",") | shell }}{% endif %} bash ./{{ worker.name | plain }}.sh
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- endfor %}
{%- if router %}
for address in{% for worker in workers %}{% for slot in worker.slots %} "$HOST_{{ slot.hosts[0] }}:{{ slot.port }}"{% endfor %}{% endfor %}; do
  until curl --silent --fail --output /dev/null "http://$address{{ health | plain }}"; do sleep 5; done
done
on "$HOST_0" HOST=0.0.0.0 bash ./router.sh
{%- endif %}
wait -n
