#!/usr/bin/env bash
# tools/check_layers against small trees with one fault each. Prints as cmocka does, so that tools/test counts the cases.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# expect NAME WANTED FILE TEXT: with FILE holding TEXT in a tree that is otherwise right, the check says WANTED.
expect() {
    local name=$1 wanted=$2 file=$3 text=$4 output status
    rm -rf "$tree"/*
    mkdir -p "$tree/tools" "$tree/src/base" "$tree/src/pjrt" "$tree/src/graph" "$tree/src/cli" "$tree/${file%/*}"
    printf 'base:\npjrt: base\ngraph: base pjrt/ffi.h\ncli: base pjrt graph\n' >"$tree/tools/layers"
    printf '#include "base/status.h"\n#include <stdio.h>\n' >"$tree/src/graph/graph.c"
    printf '%b' "$text" >"$tree/$file"
    echo "[ RUN      ] $name"
    output=$("$top/tools/check_layers" "$tree" 2>&1)
    status=$?
    if [[ $wanted == right && $status == 0 ]] || [[ $wanted != right && $status == 1 && $output == *"$wanted"* ]]; then
        echo "[       OK ] $name"
    else
        printf 'wanted: %s\nfound (%s): %s\n[  FAILED  ] %s\n' "$wanted" "$status" "$output" "$name"
        failed=1
    fi
}

expect allowed right src/graph/x.c '#include "pjrt/ffi.h"\n#include "graph/graph.h"\n'
expect not_allowed 'src/graph/x.c:2: graph may not include pjrt/client.h' src/graph/x.c '\n#include "pjrt/client.h"\n'
expect upwards 'base may not include graph/graph.h' src/base/x.h '#  include "graph/graph.h"\n'
expect tests_too 'graph may not include cli/main.h' src/graph/x_test.c '#include "cli/main.h"\n'
expect cycle 'graph lists cli' tools/layers 'base:\npjrt:\ngraph: base cli\ncli: graph\n'
expect unknown_module 'module zoo is not in' src/zoo/zoo.c '\n'
expect plugin_header 'only pjrt may include pjrt_c_api.h' src/graph/x.c '#include <pjrt_c_api.h>\n'
expect plugin_header_in_pjrt right src/pjrt/x.c '#include "pjrt_c_api.h"\n'
expect internal 'pjrt/internal.h is internal' src/cli/x.c '#include "pjrt/internal.h"\n'
expect no_module_in_front 'wants its module in front' src/graph/x.c '#include "graph.h"\n'
expect environment 'src/pjrt/x.c:1: only cli may call getenv' src/pjrt/x.c 'char *x = getenv("X");\n'
expect exit 'only cli may call exit' src/pjrt/x.c '{ exit(1); }\n'
expect exit_in_cli right src/cli/x.c '{ exit(1); }\n'
expect exit_in_comment right src/pjrt/x.c '/* never exit(1);\n * nor exit(2) */\nputs("exit(3)"); on_exit(f, 0);\n'
expect cmake_deps 'DEPS has cli' src/graph/module.cmake 'ct_module(graph DEPS base cli)\n'
exit $failed
