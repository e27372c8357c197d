{%- macro check(needs) -%}
{%- if needs.module -%}
{{ needs.program | shell }} -c {{ ("import " ~ needs.module) | shell }} 2>/dev/null || { echo {{ needs.missing | shell }} >&2; exit 1; }
{%- else -%}
command -v {{ needs.program | shell }} >/dev/null || { echo {{ needs.missing | shell }} >&2; exit 1; }
{%- endif -%}
{%- endmacro -%}
