#!/usr/bin/env bash
# Chat templates against Jinja: templates.py with the wheels that tools/setup --tests unpacked; skipped without them.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
deps=${CT_DEPS_DIR:-$top/.deps}
path=$(printf '%s:' "$deps"/python/*)
for python in /usr/bin/python3.11 /usr/bin/python3 python3; do
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$path "$python" -c 'import jinja2' 2>/dev/null && [[ -d $deps/python/trl ]] || continue
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$path exec "$python" "$top/tests/tokenizer/templates.py" ./render_templates "$deps" "$@"
done
echo "[ RUN      ] templates"
echo "no Python with Jinja and the templates that tools/setup --tests fetches"
echo "[  SKIPPED ] templates"
